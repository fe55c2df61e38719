import type { AgUiEvent } from '../ag-ui';
import { CUSTOM, CUSTOM_NAMES } from '../event-fields';
import { fieldsOf, isObject, textOf } from '../fields';
import { withInterlude } from '../interlude-metadata';
import type { TaskOutput } from '../read-models';
import { OutputDraft } from '../task-output';
import { redactText, redactValue, type Tally } from './redact-value';
import { prepareTexts, RedactedText, wholeText, type YieldIfDue } from './redacted-text';

/** Maximum number of streams tracked at a time. The caller reads an evicted stream again. */
const MAX_TEXTS = 256;
const UNKNOWN_START = '…';

const STREAMS: Record<string, { kind: string; id: string } | undefined> = {
  TEXT_MESSAGE: { kind: 'text', id: 'messageId' },
  REASONING_MESSAGE: { kind: 'reasoning', id: 'messageId' },
  TOOL_CALL: { kind: 'tool', id: 'toolCallId' },
};
const STEP_TYPE = /^(TEXT_MESSAGE|REASONING_MESSAGE|TOOL_CALL)_(START|CONTENT|ARGS|CHUNK|END)$/;
/** AG-UI's own identifier fields. */
const AG_UI_IDS: ReadonlySet<string> = new Set([
  ...['messageId', 'toolCallId', 'threadId', 'runId', 'parentRunId', 'parentMessageId', 'subagentRunId'],
]);

/** An event of a streamed message, thought, tool call or task output. */
export interface StreamStep {
  /** Identifies the stream across kinds. */
  key: string;
  /** The id of the message, thought, call or task run. */
  id: string;
  phase: 'start' | 'content' | 'end';
  /** True if the event carries the whole text so far. */
  isWhole: boolean;
  /** True if the event may be the first of its stream. */
  mayBegin: boolean;
}

/** @returns null for an event that is not part of a stream */
export function streamStep(event: AgUiEvent): StreamStep | null {
  const { whole, taskPosition } = fieldsOf(event.metadata?.interlude);
  const isWhole = whole === true;
  if (event.type === 'CUSTOM' && event.name === CUSTOM.taskOutput) {
    const id = textOf(taskPosition);
    return id === null ? null : { key: `output ${id}`, id, phase: 'content', isWhole, mayBegin: true };
  }
  const [, stream = '', step] = STEP_TYPE.exec(event.type) ?? [];
  const known = STREAMS[stream];
  const id = known === undefined ? null : textOf(event[known.id]);
  if (known === undefined || id === null) return null;
  const phase = step === 'START' ? 'start' : step === 'END' ? 'end' : 'content';
  return { key: `${known.kind} ${id}`, id, phase, isWhole, mayBegin: isWhole || step === 'CHUNK' };
}

export function isOutput({ key }: StreamStep): boolean {
  return key.startsWith('output ');
}

/** The unredacted content of a stream so far. */
export class StreamPrefix {
  readonly #key: string;
  /** Null if the start of the text is missing: the rest may start within a secret. */
  text: string | null = '';
  output: OutputDraft | null = null;
  #isEmpty = true;

  constructor(key: string) {
    this.#key = key;
  }

  add(event: AgUiEvent, occurredAt: number): void {
    const step = streamStep(event);
    if (step?.key !== this.#key || step.phase === 'end') return;
    if (this.#key.startsWith('output ')) {
      this.output ??= new OutputDraft(null);
      this.output.add(event, occurredAt);
      return;
    }
    const isNew = this.#isEmpty && step.phase === 'content' && !step.mayBegin;
    this.#isEmpty = false;
    if (step.phase === 'start') this.text = '';
    else if (step.isWhole) this.text = deltaOf(event);
    else this.text = this.text === null || isNew ? null : this.text + deltaOf(event);
  }
}

/**
 * Redacts a session's events one by one. Streams are tracked, because a secret may arrive in pieces: each event carries
 * the new part of the `RedactedText`, or the `whole` text if shown text changed.
 *
 * Ordering: pass events in log order without gaps, from the start of a stream or from the reader's resume position.
 * Failure: a stream whose start is not yet read shows nothing until an event carries the whole text; a stream whose
 * start is gone shows `…`.
 */
export class EventRedactor {
  /** Null for a text whose start is gone. */
  readonly #texts = new Map<string, RedactedText | null>();
  readonly #outputs = new Map<string, OutputDraft>();
  readonly #knowsBeginnings: boolean;
  /** Keys of evicted streams. */
  readonly #forgotten = new Set<string>();

  /** @param knowsBeginnings true if the first event seen of a stream is its start */
  constructor(knowsBeginnings: boolean) {
    this.#knowsBeginnings = knowsBeginnings;
  }

  /** True if the caller must first read the stream's earlier events, see `StreamPrefix`. */
  lacks({ key, phase, isWhole }: StreamStep): boolean {
    return phase === 'content' && !isWhole && !this.#texts.has(key) && !this.#outputs.has(key);
  }

  /** @param soFar the stream's content including this event, if the caller has read it; null if it was removed */
  redact(event: AgUiEvent, tally: Tally, soFar?: StreamPrefix | null): AgUiEvent {
    const step = streamStep(event);
    if (step === null) {
      const lost = event.type === 'CUSTOM' && event.name === CUSTOM.taskOutput;
      return redactEvent(lost ? withOutputText(event, '') : withDelta(event, ''), tally);
    }
    if (isOutput(step)) return redactEvent(withOutputText(event, ''), tally);
    const redacted = redactEvent(event, tally);
    if (step.phase === 'end') {
      // If content follows the end, the caller must read the earlier content again.
      if (!this.#knowsBeginnings) this.#texts.delete(step.key);
      return redacted;
    }
    if (step.phase === 'start') {
      this.#keep(this.#texts, step.key, new RedactedText());
      return redacted;
    }
    if (step.isWhole) return this.#restart(redacted, step, deltaOf(event));
    const text = this.#texts.get(step.key);
    if (soFar !== undefined)
      return soFar === null ? { ...redacted, delta: '' } : this.#restart(redacted, step, soFar.text);
    if (text === undefined) {
      if (!this.#knowsBeginnings || this.#forgotten.has(step.key)) return { ...redacted, delta: '' };
      return this.#restart(redacted, step, step.mayBegin ? deltaOf(event) : null);
    }
    if (text === null) return { ...redacted, delta: '' };
    const more = text.more(deltaOf(event));
    this.#keep(this.#texts, step.key, text);
    return more === null
      ? { ...withInterlude(redacted, { whole: true }), delta: text.shown().text }
      : { ...redacted, delta: more };
  }

  /** @param known the text from its start; null if the start is gone */
  #restart(redacted: AgUiEvent, step: StreamStep, known: string | null): AgUiEvent {
    const whole = withInterlude(redacted, { whole: true });
    const text = known === null ? null : wholeText(known);
    // Later deltas continue from this text.
    text?.more('');
    this.#keep(this.#texts, step.key, text);
    return { ...whole, delta: text?.shown().text ?? UNKNOWN_START };
  }

  /** Redacts task output. Each event carries the whole kept output, which is small, so byte offsets stay correct. */
  async redactOutput(
    { event, occurredAt }: { event: AgUiEvent; occurredAt: number },
    step: StreamStep,
    tally: Tally,
    yieldIfDue: YieldIfDue,
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
    const output = await redactTaskOutput((draft as OutputDraft).result(), tally, yieldIfDue);
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

/** Redacts task output; `redacted` includes the secrets redacted by the runner. */
export async function redactTaskOutput(output: TaskOutput, tally: Tally, yieldIfDue: YieldIfDue): Promise<TaskOutput> {
  await prepareTexts(output.parts, yieldIfDue);
  const found: Tally = { redacted: 0 };
  // Another part follows, so this one is cut off.
  const last = output.hasEnded && output.error === null ? output.parts.at(-1) : undefined;
  const parts = output.parts.map((part) => ({ ...part, text: redactText(part.text, found, part !== last) }));
  const error = output.error === null ? null : redactText(output.error, found);
  tally.redacted += found.redacted;
  return { ...output, parts, error, redacted: output.redacted + found.redacted };
}

/** Redacts an event except its delta. */
function redactEvent({ delta, ...event }: AgUiEvent, tally: Tally): AgUiEvent {
  const isKnown = event.type === 'CUSTOM' && CUSTOM_NAMES.has(event.name);
  const fields = Object.entries(event).map(([name, field]) => {
    if (AG_UI_IDS.has(name) && typeof field === 'string') return [name, field] as const;
    if (name === 'metadata' && isObject(field)) return [name, redactMetadata(field, tally)] as const;
    const isFree = !(name === 'value' && isKnown);
    return [name, redactValue(field, tally, isFree, name)] as const;
  });
  const redacted: AgUiEvent = { ...Object.fromEntries(fields), type: event.type };
  if (delta === undefined) return redacted;
  return { ...redacted, delta: typeof delta === 'string' ? delta : redactValue(delta, tally, true) };
}

function redactMetadata({ interlude, ...others }: Record<string, unknown>, tally: Tally): Record<string, unknown> {
  const rest = redactValue(others, tally, true) as Record<string, unknown>;
  return interlude === undefined ? rest : { ...rest, interlude: redactValue(interlude, tally, false) };
}

/** Replaces the delta, because a piece may be part of a secret. */
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
