import type { AgUiEvent, FileEdit } from '@/lib/protocol/ag-ui';
import { compact } from '@/lib/protocol/fields';
import type { Emit } from '../emit';
import { remember } from '../remember';
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
}

interface Call {
  /** Its end was told, or its result. */
  phase: 'open' | 'closed' | 'answered';
  args: string;
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
  readonly #ended = new Map<string, Stretch>();
  readonly #calls = new Map<string, Call>();
  /** Texts and thoughts that stay open, by kind and name. */
  readonly #held = new Map<string, Stretch>();
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

  /** What another process has begun to tell: what it says at last replaces what was told of it. */
  takeUp(said: { texts: readonly string[]; thoughts: readonly string[]; calls: readonly string[] }): void {
    const begun = (kind: Stretch['kind'], name: string) =>
      remember(this.#ended, `${kind}:${name}`, { kind, name, id: name, shown: '', length: 0 }, MAX_REMEMBERED);
    for (const name of said.texts) begun('text', name);
    for (const name of said.thoughts) begun('thought', name);
    for (const id of said.calls) remember(this.#calls, id, { phase: 'open', args: '' }, MAX_REMEMBERED);
  }

  /** Goes on with a text or thought. @param name the agent's id for it; null: it goes on until something else begins */
  say(kind: Stretch['kind'], name: string | null, delta: string, about: TextAbout = {}): void {
    if (delta === '') return;
    this.#tell(this.#stretch(kind, name, about), delta);
  }

  /** The whole of a text or thought so far, or at last: only what is new is said, and what differs is replaced. */
  sayWhole(kind: Stretch['kind'], name: string, whole: string, about: TextAbout = {}): void {
    if (whole === '') return;
    const ended = this.#ended.get(`${kind}:${name}`);
    if (ended !== undefined && this.#open?.name !== name) {
      if (ended.shown === null || ended.shown === whole) return;
      this.#replace(ended, whole);
      this.#emitEnd(ended);
      keep(ended, whole, MAX_COMPARED.ended);
      return;
    }
    const stretch = this.#stretch(kind, name, about);
    const goesOn = stretch.shown === null ? whole.length >= stretch.length : whole.startsWith(stretch.shown);
    if (goesOn) this.#tell(stretch, whole.slice(stretch.length));
    else this.#replace(stretch, whole);
  }

  /** Ends what is open. @param name, kind end only this; by default everything */
  endText(name?: string, kind?: Stretch['kind']): void {
    for (const open of new Set([...this.#held.values(), ...(this.#open === null ? [] : [this.#open])])) {
      if ((name === undefined || open.name === name) && (kind === undefined || open.kind === kind)) this.#end(open);
    }
  }

  #end(stretch: Stretch): void {
    const key = `${stretch.kind}:${stretch.name}`;
    if (this.#open === stretch) this.#open = null;
    this.#held.delete(key);
    this.#emitEnd(stretch);
    keep(stretch, stretch.shown, MAX_COMPARED.ended);
    remember(this.#ended, key, stretch, MAX_REMEMBERED);
  }

  /** Ends what was being said when something else begins. */
  #breakIn(): void {
    const open = this.#open;
    if (open !== null && this.#held.get(`${open.kind}:${open.name}`) !== open) this.#end(open);
  }

  /** Begins a call, unless it is known. */
  call(id: string, name: string): void {
    if (this.#calls.has(id)) return;
    const parent = this.#open?.kind === 'text' ? this.#open.id : null;
    this.#breakIn();
    this.#calls.set(id, { phase: 'open', args: '' });
    if (this.#calls.size > MAX_REMEMBERED) this.#forgetCall();
    this.#say({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, ...compact({ parentMessageId: parent }) });
  }

  hasCall(id: string): boolean {
    return this.#calls.has(id);
  }

  /** Calls without a result. */
  get openCalls(): string[] {
    return [...this.#calls].filter(([, { phase }]) => phase !== 'answered').map(([id]) => id);
  }

  /** The arguments of a call as they are by now; told again, they change only if they differ. */
  args(id: string, value: unknown): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.phase !== 'open' || value === undefined) return;
    const args = typeof value === 'string' ? value : JSON.stringify(value);
    if (args === call.args) return;
    const grows = call.args !== '' && args.startsWith(call.args);
    const isFirst = call.args === '';
    for (const [at, delta] of deltasOf(grows ? args.slice(call.args.length) : args).entries()) {
      const whole = at === 0 && !grows && !isFirst ? { metadata: { interlude: { whole: true as const } } } : {};
      this.#say({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta, ...whole });
    }
    call.args = args;
  }

  /** More of the arguments of a call, of an agent that tells them piece by piece. */
  addArgs(id: string, delta: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.phase !== 'open') return;
    for (const part of deltasOf(delta)) this.#say({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta: part });
    call.args += delta;
  }

  /** The call runs: its arguments are complete. */
  endCall(id: string): void {
    const call = this.#calls.get(id);
    if (call?.phase !== 'open') return;
    call.phase = 'closed';
    call.args = '';
    this.#say({ type: 'TOOL_CALL_END', toolCallId: id });
  }

  /** What the call gave; the first word counts. */
  result(id: string, content: string, about: { isError?: boolean; edits?: FileEdit[] } = {}): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.phase === 'answered') return;
    this.endCall(id);
    call.phase = 'answered';
    const { isError = false, edits = [] } = about;
    this.#say({
      type: 'TOOL_CALL_RESULT',
      messageId: `${id}/result`,
      toolCallId: id,
      content: fittingText(content),
      role: 'tool',
      ...(isError ? { isError } : {}),
      ...(edits.length > 0 ? { metadata: { interlude: { edits: fittingEdits(edits) } } } : {}),
    });
  }

  /** Ends what is open; calls stay without a result. */
  close(): void {
    this.endText();
    for (const id of this.#calls.keys()) this.endCall(id);
  }

  #stretch(kind: Stretch['kind'], name: string | null, about: TextAbout): Stretch {
    const open = this.#open;
    if (open !== null && open.kind === kind && (name === null || open.name === name)) return open;
    this.#breakIn();
    const given = name ?? `${this.#prefix()}/${this.#named++}`;
    const held = this.#held.get(`${kind}:${given}`);
    if (held !== undefined) {
      this.#open = held;
      return held;
    }
    const isKnown = this.#ended.has(`${kind}:${given}`);
    const stretch: Stretch = {
      kind,
      name: given,
      id: isKnown ? `${given}~${this.#named++}` : given,
      shown: '',
      length: 0,
    };
    this.#open = stretch;
    if (about.staysOpen) {
      const [oldest] = this.#held.size < MAX_HELD ? [] : this.#held.values();
      if (oldest !== undefined) this.#end(oldest);
      this.#held.set(`${kind}:${given}`, stretch);
    }
    const reply = about.replyTo === undefined ? {} : { metadata: { interlude: { replyTo: about.replyTo } } };
    if (kind === 'text') this.#say({ type: 'TEXT_MESSAGE_START', messageId: stretch.id, role: 'assistant', ...reply });
    else {
      this.#say({ type: 'REASONING_START', messageId: stretch.id });
      this.#say({ type: 'REASONING_MESSAGE_START', messageId: stretch.id, role: 'reasoning' });
    }
    return stretch;
  }

  #tell(stretch: Stretch, text: string): void {
    for (const delta of deltasOf(text)) this.#say({ type: CONTENT[stretch.kind], messageId: stretch.id, delta });
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

  #forgetCall(): void {
    const [id] = [...this.#calls].find(([, { phase }]) => phase === 'answered') ?? [...this.#calls][0] ?? [];
    if (id === undefined) return;
    this.endCall(id);
    this.#calls.delete(id);
  }

  #say(event: AgUiEvent): void {
    this.#emit({ ...event, ...this.#mark });
  }
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
