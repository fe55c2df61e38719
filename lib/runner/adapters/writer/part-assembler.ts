import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { compact } from '@interlude/protocol/fields';
import type { CallState, TextState } from '@interlude/protocol/lifecycle/grammar';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { setBounded } from '../wire';
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

/** Ended texts and calls kept for later corrections and results. */
const MAX_REMEMBERED = 512;
/** Texts and thoughts open at once; beyond this, the oldest ends. */
const MAX_OPEN = 64;
/**
 * Maximum length of a text kept for comparison. For longer texts only the length is known, and they can't be corrected
 * after their end.
 */
const MAX_COMPARED = { open: 1024 * 1024, ended: 64 * 1024 };
/** Calls distinguished under one reused id. */
const MAX_REUSES = 64;

interface CallOptions {
  /** Defaults to the open text. */
  parentMessageId?: string;
  /** True if a known call that has a result, or whose turn has ended, is a new call under the same id. */
  isStart?: boolean;
  /** Complete arguments. Different arguments mean a new call under the same id. */
  args?: string | undefined;
}

interface Part {
  kind: 'text' | 'thought';
  /** The agent's id. */
  name: string;
  /** Id in the log. An interrupted message continues under a new id. */
  id: string;
  /** Text written so far; null once it is too long to keep. */
  shown: string | null;
  length: number;
  /** True if other parts may interleave. */
  staysOpen: boolean;
}

/**
 * Assembles the texts, thoughts and tool calls of one speaker, the agent or a subagent. A new part ends the open text,
 * so agents without ends or message ids are handled correctly; parts with `staysOpen` may interleave.
 *
 * Some agents reuse call ids. Each call then gets its own id in the log, and a result goes to the oldest call without
 * one, in this turn if possible.
 */
export class PartAssembler {
  readonly #emit: Emit;
  readonly prefix: () => string;
  readonly taskId: string | null;
  readonly #runId: string | null;
  readonly #texts = new Entities<'text', Part>('text', { mostOpen: MAX_OPEN, mostEnded: MAX_REMEMBERED });
  /** Arguments so far by log id; null if only the result has come. */
  readonly #calls = new Entities<'call', string | null>('call', {
    mostOpen: MAX_REMEMBERED,
    mostEnded: MAX_REMEMBERED,
  });
  /** Log ids of each reused id, oldest first. */
  readonly #reusedIds = new Map<string, string[]>();
  #open: Part | null = null;
  #idCount = 0;

  /**
   * @param prefix start of generated ids for parts the agent does not name
   * @param taskId task whose subagent this is
   * @param runId run of that task, if the agent names it
   */
  constructor(emit: Emit, prefix: () => string, taskId: string | null = null, runId: string | null = null) {
    this.#emit = emit;
    this.prefix = prefix;
    this.taskId = taskId;
    this.#runId = runId;
  }

  /** Continues parts of an earlier process: their final text replaces what was written. */
  resume(before: { texts: readonly string[]; thoughts: readonly string[]; calls: readonly string[] }): void {
    const add = (kind: Part['kind'], name: string) => {
      const part = { kind, name, id: name, shown: '', length: 0, staysOpen: false };
      this.#texts.take(keyOf(part), 'start', part);
      this.#texts.take(keyOf(part), 'cut');
    };
    for (const name of before.texts) add('text', name);
    for (const name of before.thoughts) add('thought', name);
    for (const id of before.calls) this.#calls.take(id, 'start', '');
  }

  /** Appends to a text or thought. @param name the agent's id; null continues the open part */
  appendText(kind: Part['kind'], name: string | null, delta: string, about: TextOptions = {}): void {
    if (delta === '') return;
    this.#appendDelta(this.#part(kind, name, about), delta, about);
  }

  /** Sets the full text: appends if it extends the written text, else replaces it. */
  setText(kind: Part['kind'], name: string, whole: string, about: TextOptions = {}): void {
    if (whole === '') return;
    const key = keyOf({ kind, name });
    const ended = this.#texts.verdict(key, 'whole') === 'corrects' ? this.#texts.about(key) : undefined;
    if (ended !== undefined) {
      this.#correct(ended, whole, about);
      return;
    }
    const part = this.#part(kind, name, about);
    const isExtension = part.shown === null ? whole.length >= part.length : whole.startsWith(part.shown);
    if (isExtension) this.#appendDelta(part, whole.slice(part.length), about);
    else this.#replace(part, whole);
  }

  /** Corrects a text that ended before its full text arrived. */
  #correct(ended: Part, whole: string, about: TextOptions): void {
    const { shown } = ended;
    if (shown === whole) return;
    if (shown !== null && !ended.staysOpen) {
      this.#replace(ended, whole);
      this.#write(...textEnd(ended));
      keep(ended, whole, MAX_COMPARED.ended);
      return;
    }
    // Writes the rest as a new part, which is late but not lost.
    const length = shown === null || whole.startsWith(shown) ? ended.length : 0;
    if (whole.length <= length) return;
    const rest = this.#part(ended.kind, ended.name, about);
    Object.assign(rest, { shown: null, length });
    this.#appendDelta(rest, whole.slice(length), about);
  }

  /**
   * Appends to a part that ended with its turn. A snapshot keeps the part at its original position.
   *
   * @returns false if the full text is unknown or the part has not ended
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

  /** Ends the open parts with this name and kind; all by default. */
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

  /** Ends the open text because another part starts. */
  #interrupt(): void {
    if (this.#open !== null && !this.#open.staysOpen) this.#end(this.#open);
  }

  /** Starts a call unless it is known. @returns its id in the log */
  startCall(id: string, name: string, { parentMessageId, isStart = false, args }: CallOptions = {}): string {
    const known = this.#newest(id);
    // The result arrived first.
    if (this.#calls.about(known) === null) this.#calls.forget(known);
    const verdict = this.#calls.verdict(known, 'start');
    const isAnother = (isStart && verdict === 'late') || (args !== undefined && this.#runsWithOther(known, args));
    if (verdict !== 'begins' && !isAnother) return known;
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

  /** Log id of the call that a result belongs to. */
  #awaitingResult(id: string): string {
    const ids = this.#reusedIds.get(id) ?? [id];
    const abandoned = () => ids.findLast((one) => this.#calls.stateOf(one) === 'left');
    return ids.find((one) => this.#calls.isOpen(one)) ?? abandoned() ?? this.#newest(id);
  }

  /** Text written so far; null if unknown or too long to keep. */
  textOf(kind: Part['kind'], name: string): string | null {
    return this.#texts.about(keyOf({ kind, name }))?.shown ?? null;
  }

  textState(kind: Part['kind'], name: string): TextState {
    return this.#texts.stateOf(keyOf({ kind, name }));
  }

  argsOf(id: string): string {
    return this.#calls.about(id) ?? '';
  }

  /** Log id of the newest call with the agent's id; null if none. */
  loggedCallId(id: string): string | null {
    const newest = this.#newest(id);
    return this.#calls.about(newest) == null ? null : newest;
  }

  /** @param id log id */
  callState(id: string): CallState {
    return this.#calls.stateOf(id);
  }

  /** Calls of this turn without a result. */
  get openCalls(): string[] {
    return this.#calls.open;
  }

  /** Sets the arguments so far; writes nothing if they are unchanged. */
  setArgs(id: string, value: unknown): void {
    if (value === undefined || this.#calls.verdict(id, 'args') !== 'continues') return;
    const before = this.#calls.about(id) ?? '';
    const args = typeof value === 'string' ? value : JSON.stringify(value);
    if (args === before) return;
    const grows = before !== '' && args.startsWith(before);
    this.#write(...callArgs(id, grows ? args.slice(before.length) : args, !grows && before !== ''));
    this.#calls.take(id, 'args', args);
  }

  appendArgs(id: string, delta: string): void {
    if (this.#calls.verdict(id, 'args') !== 'continues') return;
    this.#write(...callArgs(id, delta, false));
    this.#calls.take(id, 'args', (this.#calls.about(id) ?? '') + delta);
  }

  /** Completes the arguments. @param args final arguments, which distinguish reuses of the id */
  endCall(id: string, args = ''): void {
    const ends = this.#calls.verdict(id, 'end') === 'ends';
    if (ends || args !== '') this.#calls.take(id, 'end', args.length > MAX_COMPARED.ended ? '' : args);
    if (ends) this.#write({ type: 'TOOL_CALL_END', toolCallId: id });
  }

  /** Writes the result of a call, once. */
  setResult(id: string, content: string, about: ResultOptions = {}): void {
    const shown = this.#awaitingResult(id);
    this.endCall(shown);
    // The call started before this process; the log may hold its start.
    if (this.#calls.verdict(shown, 'result') === 'stray') this.#calls.take(shown, 'start', null);
    if (this.#calls.take(shown, 'result') === 'repeats') return;
    this.#write(callResult(shown, content, about));
  }

  /** Ends all texts and call arguments. */
  endAll(): void {
    this.endText();
    for (const id of this.#calls.open) this.endCall(id);
  }

  /** Ends everything with the turn, task or process. Results of abandoned calls may still come. */
  close(): void {
    this.endText();
    for (const id of this.#calls.open) this.#abandon(id);
    // From now on, the same id means a new call, whatever its arguments.
    for (const id of this.#calls.ended) if (this.argsOf(id) !== '') this.#calls.take(id, 'cut', '');
  }

  /** Closes everything and keeps only the lengths of texts, once the subagent's task has ended. */
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
    const partName = name ?? `${this.prefix()}/${this.#idCount++}`;
    const key = keyOf({ kind, name: partName });
    const known = this.#texts.about(key);
    if (known !== undefined && this.#texts.isOpen(key)) {
      this.#open = known;
      return known;
    }
    const crowded = this.#texts.crowded;
    if (crowded !== null) this.#end(this.#texts.about(crowded) as Part);
    // A reopened text gets a new id.
    const id = known === undefined ? partName : `${partName}~${this.#idCount++}`;
    const part: Part = { kind, name: partName, id, shown: '', length: 0, staysOpen: about.staysOpen === true };
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
