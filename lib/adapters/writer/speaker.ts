import type { AgUiEvent, FileEdit } from '@/lib/protocol/ag-ui';
import { compact } from '@/lib/protocol/fields';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import type { Emit } from '../emit';
import { deltasOf, fittingText, jsonBytes } from './long-text';

/** Most ended texts, and most calls, that are remembered for what is told of them later. */
const MAX_REMEMBERED = 512;
/** Most texts and thoughts that stay open at once; beyond it the oldest ends. */
const MAX_HELD = 64;
/** Of a longer text only the length is known while it is said, and after its end nothing it says can change it. */
const MAX_COMPARED = { open: 1024 * 1024, ended: 64 * 1024 };
/** What all edits of one call may take as JSON. */
const MAX_EDITS_BYTES = 128 * 1024;

export interface TextAbout {
  /** The messages it answers. */
  replyTo?: string[];
  /** The agent names it with each delta: other texts and calls may come in between. It ends with its END or its turn. */
  staysOpen?: true;
  /** The native message, where it holds more than its text. */
  rawEvent?: unknown;
}

export interface ResultAbout {
  isError?: boolean;
  edits?: FileEdit[];
  /** By default made of the call's id. */
  messageId?: string;
  rawEvent?: unknown;
}

interface Stretch {
  kind: 'text' | 'thought';
  /** What the agent calls it. */
  name: string;
  /** What it is called in the log: a message that was broken in on goes on under another id. */
  id: string;
  /** What was told of it; null once it is too long to keep. */
  shown: string | null;
  length: number;
  /** Others may come between. */
  staysOpen: boolean;
}

/**
 * One voice of a session, the agent's own or a subagent's: it says one thing at a time. What begins ends what was being
 * said before, so an agent that tells no ends, or no message ids, is read right all the same. Only what `staysOpen` is
 * said beside the rest.
 */
export class Speaker {
  readonly #emit: Emit;
  readonly #prefix: () => string;
  readonly #mark: Partial<AgUiEvent>;
  readonly #texts = new Entities<'text', Stretch>('text', { mostOpen: MAX_HELD, mostEnded: MAX_REMEMBERED });
  /** Calls, with their arguments so far. */
  readonly #calls = new Entities<'call', string>('call', { mostOpen: MAX_REMEMBERED, mostEnded: MAX_REMEMBERED });
  /** What is being said. */
  #open: Stretch | null = null;
  #named = 0;

  /**
   * @param prefix what ids begin with that the agent does not give: the run it says them in
   * @param subagentRunId the task whose subagent this is
   */
  constructor(emit: Emit, prefix: () => string, subagentRunId: string | null = null) {
    this.#emit = emit;
    this.#prefix = prefix;
    this.#mark = subagentRunId === null ? {} : { subagentRunId };
  }

  /** What another process has begun to say: what it says at last replaces what was shown. */
  takeUp(said: { texts: readonly string[]; thoughts: readonly string[]; calls: readonly string[] }): void {
    const begun = (kind: Stretch['kind'], name: string) => {
      const stretch = { kind, name, id: name, shown: '', length: 0, staysOpen: false };
      this.#texts.take(keyOf(stretch), 'start', stretch);
      this.#texts.take(keyOf(stretch), 'cut');
    };
    for (const name of said.texts) begun('text', name);
    for (const name of said.thoughts) begun('thought', name);
    for (const id of said.calls) this.#calls.take(id, 'start', '');
  }

  /** Goes on with a text or thought. @param name the agent's id for it; null: it goes on until something else begins */
  say(kind: Stretch['kind'], name: string | null, delta: string, about: TextAbout = {}): void {
    if (delta === '') return;
    this.#tell(this.#stretch(kind, name, about), delta, about);
  }

  /** The whole of a text or thought so far, or at last: only what is new is said, and what differs is replaced. */
  sayWhole(kind: Stretch['kind'], name: string, whole: string, about: TextAbout = {}): void {
    if (whole === '') return;
    const key = keyOf({ kind, name });
    const ended = this.#texts.about(key);
    if (ended !== undefined && this.#texts.take(key, 'whole') === 'corrects') {
      if (ended.shown === null || ended.shown === whole) return;
      this.#replace(ended, whole);
      this.#emitEnd(ended);
      keep(ended, whole, MAX_COMPARED.ended);
      return;
    }
    const stretch = this.#stretch(kind, name, about);
    const goesOn = stretch.shown === null ? whole.length >= stretch.length : whole.startsWith(stretch.shown);
    if (goesOn) this.#tell(stretch, whole.slice(stretch.length), about);
    else this.#replace(stretch, whole);
  }

  /**
   * More of a text or thought that has ended with its turn. Told as a snapshot of it, which stands where the message does.
   *
   * @returns false if the message is not known as a whole, or has not ended
   */
  sayLate(kind: Stretch['kind'], name: string, delta: string): boolean {
    const key = keyOf({ kind, name });
    const ended = this.#texts.about(key);
    if (ended === undefined || ended.shown === null || this.#texts.verdict(key, 'delta') !== 'late') return false;
    const content = ended.shown + delta;
    if (content.length > MAX_COMPARED.ended) return false;
    ended.length = content.length;
    ended.shown = content;
    const role = kind === 'text' ? 'assistant' : 'reasoning';
    this.#say({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: ended.id, role, content }] });
    return true;
  }

  /** Ends what is open. @param name, kind end only this; by default everything */
  endText(name?: string, kind?: Stretch['kind']): void {
    for (const [, open] of this.#texts.entries()) {
      if ((name === undefined || open.name === name) && (kind === undefined || open.kind === kind)) this.#end(open);
    }
  }

  #end(stretch: Stretch): void {
    if (this.#open === stretch) this.#open = null;
    if (this.#texts.take(keyOf(stretch), 'end') !== 'ends') return;
    this.#emitEnd(stretch);
    keep(stretch, stretch.shown, MAX_COMPARED.ended);
  }

  /** Ends what was being said when something else begins. */
  #breakIn(): void {
    if (this.#open !== null && !this.#open.staysOpen) this.#end(this.#open);
  }

  /** Begins a call, unless it is known. @param parentMessageId by default the text that is being said */
  call(id: string, name: string, parentMessageId?: string): void {
    if (this.#calls.verdict(id, 'start') !== 'begins') return;
    const parent = parentMessageId ?? (this.#open?.kind === 'text' ? this.#open.id : null);
    this.#breakIn();
    const crowded = this.#calls.crowded;
    if (crowded !== null) {
      this.endCall(crowded);
      this.#calls.forget(crowded);
    }
    this.#calls.take(id, 'start', '');
    this.#say({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, ...compact({ parentMessageId: parent }) });
  }

  /** What was said of a text; null if that is not known, or too long to keep. */
  shownOf(kind: Stretch['kind'], name: string): string | null {
    return this.#texts.about(keyOf({ kind, name }))?.shown ?? null;
  }

  hasSaid(kind: Stretch['kind'], name: string): boolean {
    return this.#texts.stateOf(keyOf({ kind, name })) !== 'new';
  }

  hasEnded(kind: Stretch['kind'], name: string): boolean {
    return this.#texts.stateOf(keyOf({ kind, name })) === 'ended';
  }

  /** The arguments of a call so far. */
  argsOf(id: string): string {
    return this.#calls.about(id) ?? '';
  }

  hasCall(id: string): boolean {
    return this.#calls.stateOf(id) !== 'new';
  }

  /** Calls without a result. */
  get openCalls(): string[] {
    return this.#calls.open;
  }

  /** The arguments of a call as they are by now; given again, they change only if they differ. */
  args(id: string, value: unknown): void {
    if (value === undefined || this.#calls.verdict(id, 'args') !== 'continues') return;
    const before = this.#calls.about(id) ?? '';
    const args = typeof value === 'string' ? value : JSON.stringify(value);
    if (args === before) return;
    const grows = before !== '' && args.startsWith(before);
    for (const [at, delta] of deltasOf(grows ? args.slice(before.length) : args).entries()) {
      const whole = at === 0 && !grows && before !== '' ? { metadata: { interlude: { whole: true as const } } } : {};
      this.#say({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta, ...whole });
    }
    this.#calls.take(id, 'args', args);
  }

  /** More of the arguments of a call, of an agent that gives them piece by piece. */
  addArgs(id: string, delta: string): void {
    if (this.#calls.verdict(id, 'args') !== 'continues') return;
    for (const part of deltasOf(delta)) this.#say({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta: part });
    this.#calls.take(id, 'args', (this.#calls.about(id) ?? '') + delta);
  }

  /** The call runs: its arguments are complete. */
  endCall(id: string): void {
    if (this.#calls.take(id, 'end', '') === 'ends') this.#say({ type: 'TOOL_CALL_END', toolCallId: id });
  }

  /** What the call gave; the first word counts. */
  result(id: string, content: string, about: ResultAbout = {}): void {
    this.endCall(id);
    if (this.#calls.take(id, 'result') !== 'continues') return;
    const { isError = false, edits = [], messageId = `${id}/result`, ...raw } = about;
    this.#say({
      type: 'TOOL_CALL_RESULT',
      messageId,
      toolCallId: id,
      content: fittingText(content),
      role: 'tool',
      ...(isError ? { isError } : {}),
      ...(edits.length > 0 ? { metadata: { interlude: { edits: fittingEdits(edits) } } } : {}),
      ...raw,
    });
  }

  /** Ends what is open; calls stay without a result. */
  close(): void {
    this.endText();
    for (const id of this.#calls.open) this.endCall(id);
  }

  #stretch(kind: Stretch['kind'], name: string | null, about: TextAbout): Stretch {
    const open = this.#open;
    if (open !== null && open.kind === kind && (name === null || open.name === name)) return open;
    this.#breakIn();
    const given = name ?? `${this.#prefix()}/${this.#named++}`;
    const key = keyOf({ kind, name: given });
    const known = this.#texts.about(key);
    if (known !== undefined && this.#texts.isOpen(key)) {
      this.#open = known;
      return known;
    }
    const crowded = this.#texts.crowded;
    if (crowded !== null) this.#end(this.#texts.about(crowded) as Stretch);
    // What was said before has ended: it goes on as another text.
    const id = known === undefined ? given : `${given}~${this.#named++}`;
    const stretch: Stretch = { kind, name: given, id, shown: '', length: 0, staysOpen: about.staysOpen === true };
    this.#texts.forget(key);
    this.#texts.take(key, 'start', stretch);
    this.#open = stretch;
    const reply = about.replyTo === undefined ? {} : { metadata: { interlude: { replyTo: about.replyTo } } };
    if (kind === 'text') this.#say({ type: 'TEXT_MESSAGE_START', messageId: stretch.id, role: 'assistant', ...reply });
    else {
      this.#say({ type: 'REASONING_START', messageId: stretch.id });
      this.#say({ type: 'REASONING_MESSAGE_START', messageId: stretch.id, role: 'reasoning' });
    }
    return stretch;
  }

  #tell(stretch: Stretch, text: string, { rawEvent }: TextAbout): void {
    const raw = rawEvent === undefined ? {} : { rawEvent };
    for (const delta of deltasOf(text))
      this.#say({ type: CONTENT[stretch.kind], messageId: stretch.id, delta, ...raw });
    stretch.length += text.length;
    keep(stretch, stretch.shown === null ? null : stretch.shown + text, MAX_COMPARED.open);
  }

  #replace(stretch: Stretch, text: string): void {
    for (const [at, delta] of deltasOf(text).entries()) {
      const whole = at === 0 ? { metadata: { interlude: { whole: true as const } } } : {};
      this.#say({ type: CONTENT[stretch.kind], messageId: stretch.id, delta, ...whole });
    }
    stretch.length = text.length;
    keep(stretch, text, MAX_COMPARED.open);
  }

  #emitEnd({ kind, id }: Stretch): void {
    if (kind === 'text') this.#say({ type: 'TEXT_MESSAGE_END', messageId: id });
    else {
      this.#say({ type: 'REASONING_MESSAGE_END', messageId: id });
      this.#say({ type: 'REASONING_END', messageId: id });
    }
  }

  #say(event: AgUiEvent): void {
    this.#emit({ ...event, ...this.#mark });
  }
}

function keyOf({ kind, name }: Pick<Stretch, 'kind' | 'name'>): string {
  return `${kind}:${name}`;
}

const CONTENT = { text: 'TEXT_MESSAGE_CONTENT', thought: 'REASONING_MESSAGE_CONTENT' } as const;

function keep(stretch: Stretch, text: string | null, most: number): void {
  stretch.shown = text === null || text.length > most ? null : text;
}

/** As many as there is room for, the first of them in any case. */
function fittingEdits(edits: readonly FileEdit[]): FileEdit[] {
  let left = MAX_EDITS_BYTES;
  return edits.flatMap(({ path, before, after }) => {
    if (left <= 0) return [];
    const edit = { path, before: fittingText(before, left / 2), after: fittingText(after, left / 2) };
    left -= jsonBytes(path) + jsonBytes(edit.before) + jsonBytes(edit.after);
    return [edit];
  });
}
