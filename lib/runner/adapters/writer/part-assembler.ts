import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { compact } from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/entities';
import type { CallState, TextState } from '@interlude/protocol/lifecycle/grammar';
import { setBounded } from '../bounded-map';
import type { Emit } from './part-events';
import {
  callArgs,
  callResult,
  ofTask,
  type ResultOptions,
  type TextOptions,
  textContent,
  textEnd,
  textStart,
} from './part-events';

/** Most ended texts, and most calls, that are remembered for later corrections and results. */
const MAX_REMEMBERED = 512;
/** Most texts and thoughts that stay open at once; beyond it the oldest ends. */
const MAX_OPEN = 64;
/** Of a longer text only the length is known while it is said, and after its end nothing it says can change it. */
const MAX_COMPARED = { open: 1024 * 1024, ended: 64 * 1024 };
/** Most calls that are distinguished under one id of the agent's. */
const MAX_REUSES = 64;

export interface CallOptions {
  /** By default the text that is being said. */
  parentMessageId?: string;
  /** The agent says that a call begins: one that has its result, or whose turn is over, is another one. */
  isStart?: boolean;
  /** All arguments: a call that runs with others is another one. */
  args?: string | undefined;
}

interface Part {
  kind: 'text' | 'thought';
  /** What the agent calls it. */
  name: string;
  /** What it is called in the log: a message that was broken in on goes on under another id. */
  id: string;
  /** The written part; null once it is too long to keep. */
  shown: string | null;
  length: number;
  /** Others may come between. */
  staysOpen: boolean;
}

/**
 * One voice of a session, the agent's own or a subagent's. It says one thing at a time: a new text or call ends the text
 * before it, so agents that send no ends or no message ids are read correctly. Texts that `staysOpen` may interleave.
 *
 * Some agents use the id of a call again. Each call then has an id of its own in the log, and a result belongs to the
 * oldest call without one, of this turn if there is one.
 */
export class PartAssembler {
  readonly #emit: Emit;
  readonly prefix: () => string;
  readonly taskId: string | null;
  readonly #runId: string | null;
  readonly #texts = new Entities<'text', Part>('text', { mostOpen: MAX_OPEN, mostEnded: MAX_REMEMBERED });
  /** Calls by their ids in the log, with their arguments so far; null: only the result has come. */
  readonly #calls = new Entities<'call', string | null>('call', {
    mostOpen: MAX_REMEMBERED,
    mostEnded: MAX_REMEMBERED,
  });
  /** Ids that the agent used more than once, with those in the log, oldest first. */
  readonly #reusedIds = new Map<string, string[]>();
  /** The text or thought that goes on. */
  #open: Part | null = null;
  #idCount = 0;

  /**
   * @param prefix start of generated ids, where the agent names none: the open run
   * @param taskId the task whose subagent this is, and its run if the agent names one
   */
  constructor(emit: Emit, prefix: () => string, taskId: string | null = null, runId: string | null = null) {
    this.#emit = emit;
    this.prefix = prefix;
    this.taskId = taskId;
    this.#runId = runId;
  }

  /** Takes over what another process began: its final text replaces what was shown. */
  resume(said: { texts: readonly string[]; thoughts: readonly string[]; calls: readonly string[] }): void {
    const add = (kind: Part['kind'], name: string) => {
      const part = { kind, name, id: name, shown: '', length: 0, staysOpen: false };
      this.#texts.take(keyOf(part), 'start', part);
      this.#texts.take(keyOf(part), 'cut');
    };
    for (const name of said.texts) add('text', name);
    for (const name of said.thoughts) add('thought', name);
    for (const id of said.calls) this.#calls.take(id, 'start', '');
  }

  /** Goes on with a text or thought. @param name the agent's id for it; null: it goes on until something else begins */
  appendText(kind: Part['kind'], name: string | null, delta: string, about: TextOptions = {}): void {
    if (delta === '') return;
    this.#appendDelta(this.#part(kind, name, about), delta, about);
  }

  /** The whole of a text or thought so far, or at last: only what is new is said, and what differs is replaced. */
  setText(kind: Part['kind'], name: string, whole: string, about: TextOptions = {}): void {
    if (whole === '') return;
    const key = keyOf({ kind, name });
    const ended = this.#texts.verdict(key, 'whole') === 'corrects' ? this.#texts.about(key) : undefined;
    if (ended !== undefined) {
      this.#correct(ended, whole, about);
      return;
    }
    const part = this.#part(kind, name, about);
    const goesOn = part.shown === null ? whole.length >= part.length : whole.startsWith(part.shown);
    if (goesOn) this.#appendDelta(part, whole.slice(part.length), about);
    else this.#replace(part, whole);
  }

  /** The whole of a text that has ended: it replaces one that something else broke in on. */
  #correct(ended: Part, whole: string, about: TextOptions): void {
    const { shown } = ended;
    if (shown === whole) return;
    if (shown !== null && !ended.staysOpen) {
      this.#replace(ended, whole);
      this.#write(...textEnd(ended));
      keep(ended, whole, MAX_COMPARED.ended);
      return;
    }
    // The rest becomes a text of its own: late, but not lost.
    const length = shown === null || whole.startsWith(shown) ? ended.length : 0;
    if (whole.length <= length) return;
    const rest = this.#part(ended.kind, ended.name, about);
    Object.assign(rest, { shown: null, length });
    this.#appendDelta(rest, whole.slice(length), about);
  }

  /**
   * Adds to a text or thought that has ended with its turn, by a snapshot, which stands where the message does.
   *
   * @returns false if the message is not known as a whole, or has not ended
   */
  appendLate(kind: Part['kind'], name: string, delta: string): boolean {
    const key = keyOf({ kind, name });
    const ended = this.#texts.about(key);
    if (ended === undefined || ended.shown === null || this.#texts.verdict(key, 'delta') !== 'late') return false;
    const content = ended.shown + delta;
    if (content.length > MAX_COMPARED.ended) return false;
    ended.length = content.length;
    ended.shown = content;
    const role = kind === 'text' ? 'assistant' : 'reasoning';
    this.#write({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: ended.id, role, content }] });
    return true;
  }

  /** Ends what is open. @param name, kind end only this; by default everything */
  endText(name?: string, kind?: Part['kind']): void {
    for (const [, open] of this.#texts.entries()) {
      if ((name === undefined || open.name === name) && (kind === undefined || open.kind === kind)) this.#end(open);
    }
  }

  #end(part: Part): void {
    if (this.#open === part) this.#open = null;
    if (this.#texts.take(keyOf(part), 'end') !== 'ends') return;
    this.#write(...textEnd(part));
    keep(part, part.shown, MAX_COMPARED.ended);
  }

  /** Ends what was being said when something else begins. */
  #interrupt(): void {
    if (this.#open !== null && !this.#open.staysOpen) this.#end(this.#open);
  }

  /** Begins a call, unless it is known. @returns its id in the log */
  startCall(id: string, name: string, { parentMessageId, isStart = false, args }: CallOptions = {}): string {
    const known = this.#newest(id);
    // Its result came first.
    if (this.#calls.about(known) === null) this.#calls.forget(known);
    const verdict = this.#calls.verdict(known, 'start');
    const isAnother = (isStart && verdict === 'late') || (args !== undefined && this.#runsWithOther(known, args));
    if (verdict !== 'begins' && !isAnother) return known;
    // An id of its own as well where the calls of before are not known any more.
    const shown = isAnother || known !== id ? this.#newId(id) : id;
    const parent = parentMessageId ?? (this.#open?.kind === 'text' ? this.#open.id : null);
    this.#interrupt();
    const crowded = this.#calls.crowded;
    if (crowded !== null) this.#abandon(crowded);
    this.#calls.take(shown, 'start', '');
    this.#write({
      type: 'TOOL_CALL_START',
      toolCallId: shown,
      toolCallName: name,
      ...compact({ parentMessageId: parent }),
    });
    return shown;
  }

  #runsWithOther(id: string, args: string): boolean {
    const known = this.#calls.verdict(id, 'args') === 'late' ? this.argsOf(id) : '';
    return known !== '' && known !== args;
  }

  #newId(id: string): string {
    const shown = `${id}~${this.#idCount++}`;
    const waiting = (this.#reusedIds.get(id) ?? [id]).filter((one) => this.#calls.stateOf(one) !== 'answered');
    setBounded(this.#reusedIds, id, [...waiting, shown].slice(-MAX_REUSES), MAX_REMEMBERED);
    return shown;
  }

  #newest(id: string): string {
    return this.#reusedIds.get(id)?.at(-1) ?? id;
  }

  /** The call that a result is about. */
  #awaitingResult(id: string): string {
    const ids = this.#reusedIds.get(id) ?? [id];
    const left = () => ids.findLast((one) => this.#calls.stateOf(one) === 'left');
    return ids.find((one) => this.#calls.isOpen(one)) ?? left() ?? this.#newest(id);
  }

  /** The shown part of a text; null if that is not known, or too long to keep. */
  textOf(kind: Part['kind'], name: string): string | null {
    return this.#texts.about(keyOf({ kind, name }))?.shown ?? null;
  }

  textState(kind: Part['kind'], name: string): TextState {
    return this.#texts.stateOf(keyOf({ kind, name }));
  }

  /** The arguments of a call so far. */
  argsOf(id: string): string {
    return this.#calls.about(id) ?? '';
  }

  /** The id in the log of the newest call under an id of the agent's; null if there is none. */
  loggedCallId(id: string): string | null {
    const newest = this.#newest(id);
    return this.#calls.about(newest) == null ? null : newest;
  }

  /** @param id its id in the log */
  callState(id: string): CallState {
    return this.#calls.stateOf(id);
  }

  /** Calls of this turn without a result. */
  get openCalls(): string[] {
    return this.#calls.open;
  }

  /** The arguments of a call as they are by now; given again, they change only if they differ. */
  setArgs(id: string, value: unknown): void {
    if (value === undefined || this.#calls.verdict(id, 'args') !== 'continues') return;
    const before = this.#calls.about(id) ?? '';
    const args = typeof value === 'string' ? value : JSON.stringify(value);
    if (args === before) return;
    const grows = before !== '' && args.startsWith(before);
    this.#write(...callArgs(id, grows ? args.slice(before.length) : args, !grows && before !== ''));
    this.#calls.take(id, 'args', args);
  }

  /** More of the arguments of a call, of an agent that gives them piece by piece. */
  appendArgs(id: string, delta: string): void {
    if (this.#calls.verdict(id, 'args') !== 'continues') return;
    this.#write(...callArgs(id, delta, false));
    this.#calls.take(id, 'args', (this.#calls.about(id) ?? '') + delta);
  }

  /** The call runs: its arguments are complete. @param args final arguments: others mean another call */
  endCall(id: string, args = ''): void {
    const ends = this.#calls.verdict(id, 'end') === 'ends';
    if (ends || args !== '') this.#calls.take(id, 'end', args.length > MAX_COMPARED.ended ? '' : args);
    if (ends) this.#write({ type: 'TOOL_CALL_END', toolCallId: id });
  }

  /** What the call gave; the first word counts. */
  setResult(id: string, content: string, about: ResultOptions = {}): void {
    const shown = this.#awaitingResult(id);
    this.endCall(shown);
    // The call began before this process listened, so its start may be in the log already.
    if (this.#calls.verdict(shown, 'result') === 'stray') this.#calls.take(shown, 'start', null);
    if (this.#calls.take(shown, 'result') === 'repeats') return;
    this.#write(callResult(shown, content, about));
  }

  /** Ends texts and the arguments of calls, because nothing that follows continues them. */
  endAll(): void {
    this.endText();
    for (const id of this.#calls.open) this.endCall(id);
  }

  /** The turn, task or process has ended. Results of calls that are left may still come. */
  close(): void {
    this.endText();
    for (const id of this.#calls.open) this.#abandon(id);
    // A call under the same id is another one from here on, whatever its arguments.
    for (const id of this.#calls.ended) if (this.argsOf(id) !== '') this.#calls.take(id, 'cut', '');
  }

  /** The task of the subagent has ended: of its texts only the lengths are known from here on. */
  releaseTexts(): void {
    this.close();
    for (const part of this.#texts.all()) part.shown = null;
  }

  #abandon(callId: string): void {
    this.endCall(callId);
    this.#calls.take(callId, 'cut', '');
  }

  #part(kind: Part['kind'], name: string | null, about: TextOptions): Part {
    const open = this.#open;
    if (open !== null && open.kind === kind && (name === null || open.name === name)) return open;
    this.#interrupt();
    const given = name ?? `${this.prefix()}/${this.#idCount++}`;
    const key = keyOf({ kind, name: given });
    const known = this.#texts.about(key);
    if (known !== undefined && this.#texts.isOpen(key)) {
      this.#open = known;
      return known;
    }
    const crowded = this.#texts.crowded;
    if (crowded !== null) this.#end(this.#texts.about(crowded) as Part);
    // The earlier text has ended: it goes on as another one.
    const id = known === undefined ? given : `${given}~${this.#idCount++}`;
    const part: Part = { kind, name: given, id, shown: '', length: 0, staysOpen: about.staysOpen === true };
    this.#texts.forget(key);
    this.#texts.take(key, 'start', part);
    this.#open = part;
    this.#write(...textStart(part, about));
    return part;
  }

  #appendDelta(part: Part, text: string, { rawEvent }: TextOptions): void {
    this.#write(...textContent(part, text, false, rawEvent === undefined ? {} : { rawEvent }));
    part.length += text.length;
    keep(part, part.shown === null ? null : part.shown + text, MAX_COMPARED.open);
  }

  #replace(part: Part, text: string): void {
    this.#write(...textContent(part, text, true, {}));
    part.length = text.length;
    keep(part, text, MAX_COMPARED.open);
  }

  #write(...events: readonly AgUiEvent[]): void {
    for (const event of events) this.#emit(ofTask(event, this.taskId, this.#runId));
  }
}

function keyOf({ kind, name }: Pick<Part, 'kind' | 'name'>): string {
  return `${kind}:${name}`;
}

function keep(part: Part, text: string | null, most: number): void {
  part.shown = text === null || text.length > most ? null : text;
}
