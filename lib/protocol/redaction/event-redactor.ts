import type { AgUiEvent } from '../ag-ui';
import { CUSTOM } from '../event-fields';
import { fieldsOf, isObject, textOf } from '../fields';
import { withInterlude } from '../interlude-metadata';
import type { TaskOutput } from '../read-models';
import { OutputDraft } from '../task-output';
import { redactText, redactValue, type Tally } from './redact-value';
import { prepareTexts, RedactedText, wholeText, type YieldIfDue } from './redacted-text';

/** Most texts that are followed at a time; what is evicted is read again. */
const MAX_TEXTS = 256;
const UNKNOWN_START = '…';

const STREAMS: Record<string, { kind: string; id: string } | undefined> = {
  TEXT_MESSAGE: { kind: 'text', id: 'messageId' },
  REASONING_MESSAGE: { kind: 'reasoning', id: 'messageId' },
  TOOL_CALL: { kind: 'tool', id: 'toolCallId' },
};
const STEP_TYPE = /^(TEXT_MESSAGE|REASONING_MESSAGE|TOOL_CALL)_(START|CONTENT|ARGS|CHUNK|END)$/;
/** What AG-UI itself calls by an id. */
const AG_UI_IDS: ReadonlySet<string> = new Set([
  ...['messageId', 'toolCallId', 'threadId', 'runId', 'parentRunId', 'parentMessageId', 'subagentRunId'],
]);
const OWN_EVENT_NAMES: ReadonlySet<unknown> = new Set(Object.values(CUSTOM));

/** One step of something that streams. */
export interface StreamStep {
  /** Of which message, thought, call or output. */
  key: string;
  /** Its id, as events of it have it. */
  id: string;
  /** `begins`: anew; `goes-on`: with more of it; `ends`. */
  what: 'begins' | 'goes-on' | 'ends';
  /** It has all there is so far. */
  isWhole: boolean;
  /** Nothing need have come before it. */
  mayBegin: boolean;
}

/** @returns null for what is told at once */
export function streamStep(event: AgUiEvent): StreamStep | null {
  const { whole, taskPosition } = fieldsOf(event.metadata?.interlude);
  const isWhole = whole === true;
  if (event.type === 'CUSTOM' && event.name === CUSTOM.taskOutput) {
    const id = textOf(taskPosition);
    return id === null ? null : { key: `output ${id}`, id, what: 'goes-on', isWhole, mayBegin: true };
  }
  const [, stream = '', step] = STEP_TYPE.exec(event.type) ?? [];
  const known = STREAMS[stream];
  const id = known === undefined ? null : textOf(event[known.id]);
  if (known === undefined || id === null) return null;
  const what = step === 'START' ? 'begins' : step === 'END' ? 'ends' : 'goes-on';
  return { key: `${known.kind} ${id}`, id, what, isWhole, mayBegin: isWhole || step === 'CHUNK' };
}

export function isOutput({ key }: StreamStep): boolean {
  return key.startsWith('output ');
}

/** What has come of something that streams, as it is: before anything is taken out. */
export class StreamPrefix {
  readonly #key: string;
  /** Null of a text that began somewhere else: what is here may be the second half of a secret. */
  text: string | null = '';
  output: OutputDraft | null = null;
  #isEmpty = true;

  constructor(key: string) {
    this.#key = key;
  }

  add(event: AgUiEvent, occurredAt: number): void {
    const step = streamStep(event);
    if (step?.key !== this.#key || step.what === 'ends') return;
    if (this.#key.startsWith('output ')) {
      this.output ??= new OutputDraft(null);
      this.output.add(event, occurredAt);
      return;
    }
    const isNew = this.#isEmpty && step.what === 'goes-on' && !step.mayBegin;
    this.#isEmpty = false;
    if (step.what === 'begins') this.text = '';
    else if (step.isWhole) this.text = deltaOf(event);
    else this.text = this.text === null || isNew ? null : this.text + deltaOf(event);
  }
}

/**
 * Takes the secrets out of a session's events, one by one. What streams is followed, because a secret may come in pieces:
 * its events tell what `RedactedText` shows of it so far, by what is new, or `whole` where something else is shown now.
 *
 * Ordering: events come in the log's order, without a hole, from where a text began or from `resume` on.
 * Failure: of a text whose beginning is not known, nothing is told until an event has all of it. One without a beginning
 * where it stands is `…`.
 */
export class EventRedactor {
  /** Null of a text without a beginning. */
  readonly #texts = new Map<string, RedactedText | null>();
  readonly #outputs = new Map<string, OutputDraft>();
  readonly #knowsBeginnings: boolean;
  /** What was followed and is not any more. */
  readonly #forgotten = new Set<string>();

  /** @param knowsBeginnings whether what was not heard of yet begins with the first event that comes */
  constructor(knowsBeginnings: boolean) {
    this.#knowsBeginnings = knowsBeginnings;
  }

  /** Whether what came before it of the same text has to be read first. */
  lacks({ key, what, isWhole }: StreamStep): boolean {
    return what === 'goes-on' && !isWhole && !this.#texts.has(key) && !this.#outputs.has(key);
  }

  /**
   * @param soFar what has come of its text, this event included, if that was read; null if that is not there any more
   */
  redact(event: AgUiEvent, tally: Tally, soFar?: StreamPrefix | null): AgUiEvent {
    const step = streamStep(event);
    if (step === null) {
      const lost = event.type === 'CUSTOM' && event.name === CUSTOM.taskOutput;
      return redactEvent(lost ? withOutputText(event, '') : withDelta(event, ''), tally);
    }
    if (isOutput(step)) return redactEvent(withOutputText(event, ''), tally);
    const said = redactEvent(event, tally);
    if (step.what === 'ends') {
      // more of it may come all the same, and then what came before has to be known
      if (!this.#knowsBeginnings) this.#texts.delete(step.key);
      return said;
    }
    if (step.what === 'begins') {
      this.#keep(this.#texts, step.key, new RedactedText());
      return said;
    }
    if (step.isWhole) return this.#anew(said, step, deltaOf(event));
    const text = this.#texts.get(step.key);
    if (soFar !== undefined) return soFar === null ? { ...said, delta: '' } : this.#anew(said, step, soFar.text);
    if (text === undefined) {
      if (!this.#knowsBeginnings || this.#forgotten.has(step.key)) return { ...said, delta: '' };
      return this.#anew(said, step, step.mayBegin ? deltaOf(event) : null);
    }
    if (text === null) return { ...said, delta: '' };
    const more = text.more(deltaOf(event));
    this.#keep(this.#texts, step.key, text);
    return more === null
      ? { ...withInterlude(said, { whole: true }), delta: text.shown().text }
      : { ...said, delta: more };
  }

  /** @param known the text from its beginning; null for one without */
  #anew(said: AgUiEvent, step: StreamStep, known: string | null): AgUiEvent {
    const whole = withInterlude(said, { whole: true });
    const text = known === null ? null : wholeText(known);
    // from here on, what is new is told behind this
    text?.more('');
    this.#keep(this.#texts, step.key, text);
    return { ...whole, delta: text?.shown().text ?? UNKNOWN_START };
  }

  /**
   * The same for what a task writes. Told as a whole each time: what is kept of it is not much, and its places in the
   * file stay true.
   */
  async redactOutput(
    { event, occurredAt }: { event: AgUiEvent; occurredAt: number },
    step: StreamStep,
    tally: Tally,
    rest: YieldIfDue,
    soFar?: StreamPrefix | null,
  ): Promise<AgUiEvent> {
    let draft = soFar?.output ?? this.#outputs.get(step.key);
    if (soFar?.output == null) {
      if (draft === undefined && !step.isWhole) return redactEvent(withOutputText(event, ''), tally);
      draft ??= new OutputDraft(null);
      draft.add(event, occurredAt);
    }
    this.#keep(this.#outputs, step.key, draft as OutputDraft);
    const { text, from, to, redacted, ended, error, written_at, output: _, ...about } = fieldsOf(event.value);
    const output = await redactTaskOutput((draft as OutputDraft).result(), tally, rest);
    const value = { ...fieldsOf(redactValue(about, tally, false)), output };
    return { ...withInterlude(redactEvent({ ...event, value: {} }, tally), { whole: true }), value };
  }

  #keep<T>(texts: Map<string, T>, key: string, text: T): void {
    texts.delete(key);
    texts.set(key, text);
    this.#forgotten.delete(key);
    if (texts.size <= MAX_TEXTS) return;
    const [oldest] = texts.keys();
    if (oldest === undefined) return;
    texts.delete(oldest);
    if (this.#knowsBeginnings) this.#forgotten.add(oldest);
  }
}

/** What a task has written, without secrets, each of which is counted with those that its runner took out. */
export async function redactTaskOutput(output: TaskOutput, tally: Tally, rest: YieldIfDue): Promise<TaskOutput> {
  await prepareTexts(output.parts, rest);
  const own: Tally = { redacted: 0 };
  // a part that another one follows breaks off
  const last = output.hasEnded && output.error === null ? output.parts.at(-1) : undefined;
  const parts = output.parts.map((part) => ({ ...part, text: redactText(part.text, own, part !== last) }));
  const error = output.error === null ? null : redactText(output.error, own);
  tally.redacted += own.redacted;
  return { ...output, parts, error, redacted: output.redacted + own.redacted };
}

/** Everything in an event but what streams. */
function redactEvent({ delta, ...event }: AgUiEvent, tally: Tally): AgUiEvent {
  const isKnown = event.type === 'CUSTOM' && OWN_EVENT_NAMES.has(event.name);
  const fields = Object.entries(event).map(([name, field]) => {
    if (AG_UI_IDS.has(name) && typeof field === 'string') return [name, field] as const;
    if (name === 'metadata' && isObject(field)) return [name, redactMetadata(field, tally)] as const;
    const isFree = !(name === 'value' && isKnown);
    return [name, redactValue(field, tally, isFree, name)] as const;
  });
  const said: AgUiEvent = { ...Object.fromEntries(fields), type: event.type };
  if (delta === undefined) return said;
  return { ...said, delta: typeof delta === 'string' ? delta : redactValue(delta, tally, true) };
}

function redactMetadata({ interlude, ...others }: Record<string, unknown>, tally: Tally): Record<string, unknown> {
  const rest = redactValue(others, tally, true) as Record<string, unknown>;
  return interlude === undefined ? rest : { ...rest, interlude: redactValue(interlude, tally, false) };
}

/** Pieces of what nobody shows may be pieces of a secret. */
function withDelta(event: AgUiEvent, delta: string): AgUiEvent {
  return typeof event.delta === 'string' ? { ...event, delta } : event;
}

function withOutputText(event: AgUiEvent, text: string): AgUiEvent {
  const { output: _, ...value } = fieldsOf(event.value);
  return { ...event, value: { ...value, text } };
}

function deltaOf({ delta }: AgUiEvent): string {
  return typeof delta === 'string' ? delta : '';
}
