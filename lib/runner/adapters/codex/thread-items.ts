import { type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../wire';
import type { PartAssembler } from '../writer/part-assembler';
import type { SessionWriter } from '../writer/session-writer';
import { boundValue } from '../writer/size-limits';
import { CONTINUES_IN_BACKGROUND, type Commands } from './commands';
import { callOf, thoughtOf } from './items';
import type { Turns } from './turns';

type Kind = 'text' | 'thought' | 'call';

/** Items of the open turn that are in the log. */
export interface ItemsProgress {
  begun: { id: string; kind: Kind }[];
  completed: string[];
}

const MAX_KNOWN = 4_000;
/** Completed items of one turn kept in its progress. */
const MAX_DONE = 512;
/** Types of items whose arguments are complete at the start. */
const COMPLETE_AT_START = new Set(['commandExecution', 'mcpToolCall', 'dynamicToolCall', 'sleep']);

/**
 * Writes the items of one thread. Deltas may be missing or repeated; the completed item is authoritative and written
 * once, live or from history.
 */
export class ThreadItems {
  readonly #writer: SessionWriter;
  readonly #turns: Turns;
  readonly #commands: Commands;
  readonly #completed = new Map<string, true>();
  readonly #open = new Map<string, Kind>();
  /** Started by another process; how much was written is unknown. */
  readonly #openBefore = new Map<string, true>();
  /** Items whose start arrived on this connection. Deltas of other items are incomplete. */
  readonly #started = new Map<string, true>();
  #completedInTurn: string[] = [];
  #revision = 0;

  constructor(writer: SessionWriter, turns: Turns, commands: Commands) {
    this.#writer = writer;
    this.#turns = turns;
    this.#commands = commands;
  }

  get progress(): ItemsProgress {
    return { begun: [...this.#open].map(([id, kind]) => ({ id, kind })), completed: this.#completedInTurn };
  }

  /** Changes whenever `progress` does. */
  get revision(): number {
    return this.#revision;
  }

  /** Resumes the open turn. */
  restore({ begun, completed }: ItemsProgress): void {
    this.#completedInTurn = completed;
    for (const id of completed) setBounded(this.#completed, id, true, MAX_KNOWN);
    for (const { id, kind } of begun) {
      setBounded(this.#open, id, kind, MAX_KNOWN);
      setBounded(this.#openBefore, id, true, MAX_KNOWN);
    }
    const named = (kind: Kind) => begun.filter((one) => one.kind === kind).map(({ id }) => id);
    const turnId = this.#turns.running;
    this.#parts(turnId).resume({ texts: named('text'), thoughts: named('thought'), calls: named('call') });
  }

  started(turnId: string | null, item: Fields): void {
    const id = textOf(item.id);
    if (id === null || this.#completed.has(id)) return;
    const isNew = !this.#started.has(id);
    this.#turns.enter(turnId, item);
    setBounded(this.#started, id, true, MAX_KNOWN);
    const parts = this.#parts(turnId);
    const call = callOf(item);
    const text = textOf(item.text);
    if (call !== null) {
      this.#begins(turnId, id, 'call');
      parts.startCall(id, call.name);
      parts.setArgs(id, call.args);
      if (COMPLETE_AT_START.has(String(item.type))) parts.endCall(id);
      if (item.type === 'commandExecution' && turnId !== null) this.#commands.started(id, turnId, item);
    } else if (item.type === 'userMessage') this.#turns.userMessage(turnId, id, item, isNew);
    else if (text !== null && (item.type === 'agentMessage' || item.type === 'plan')) {
      this.#begins(turnId, id, 'text');
      parts.setText('text', id, text);
    }
  }

  delta(turnId: string | null, id: string, kind: 'text' | 'thought', delta: string): void {
    if (delta === '' || this.#completed.has(id) || this.#openBefore.has(id) || !this.#started.has(id)) return;
    this.#turns.enter(turnId, {});
    this.#begins(turnId, id, kind);
    this.#parts(turnId).appendText(kind, id, delta);
  }

  wrote(id: string, delta: string): void {
    if (this.#started.has(id)) this.#commands.wrote(id, delta);
  }

  completed(turnId: string | null, item: Fields): void {
    const id = textOf(item.id);
    if (id === null || this.#completed.has(id)) return;
    this.#turns.enter(turnId, item);
    setBounded(this.#completed, id, true, MAX_KNOWN);
    if (this.#turns.open?.turnId === turnId) this.#completedInTurn = [...this.#completedInTurn, id].slice(-MAX_DONE);
    this.#open.delete(id);
    this.#revision += 1;
    if (item.type === 'commandExecution' && this.#commandEnded(turnId, id, item)) return;
    const parts = this.#parts(turnId);
    const call = callOf(item);
    if (call === null) this.#writeItem(turnId, id, item, parts);
    else {
      parts.startCall(id, call.name);
      parts.setArgs(id, call.args);
      parts.setResult(id, call.result, { isError: call.isError, edits: call.edits });
    }
  }

  /** Reconciles with Codex's list of background commands. */
  listed(terminals: readonly Fields[], now: number): void {
    const ids = new Set(terminals.flatMap(({ itemId }) => textOf(itemId) ?? []));
    this.#commands.listed(ids, now);
    const { open } = this.#turns;
    for (const terminal of terminals) {
      const id = textOf(terminal.itemId);
      if (id === null || this.#commands.has(id) || this.#completed.has(id)) continue;
      setBounded(this.#started, id, true, MAX_KNOWN);
      // The command may belong to the open turn and end within it.
      if (open !== null) this.started(open.turnId, { ...terminal, id, type: 'commandExecution' });
      else this.#commands.found(id, terminal, this.#turns.taskOf(null));
    }
  }

  /** Continues running commands as tasks before the turn ends. */
  turnEnding(turnId: string): void {
    const parts = this.#parts(turnId);
    for (const id of this.#commands.turnEnded(turnId, this.#turns.taskOf(turnId)))
      parts.setResult(id, CONTINUES_IN_BACKGROUND);
    this.turnGone();
  }

  turnGone(): void {
    this.#completedInTurn = [];
    this.#open.clear();
    this.#openBefore.clear();
    this.#revision += 1;
  }

  /** Prepares for a new connection, which may have missed items. */
  reconnected(): void {
    this.#started.clear();
  }

  #writeItem(turnId: string | null, id: string, item: Fields, parts: PartAssembler): void {
    const text = textOf(item.text) ?? '';
    switch (item.type) {
      case 'userMessage':
        this.#turns.userMessage(turnId, id, item, !this.#started.has(id));
        return;
      case 'agentMessage':
      case 'plan':
        if (text !== '') this.#turns.setLastText(text);
        parts.setText('text', id, text);
        break;
      case 'reasoning':
        parts.setText('thought', id, thoughtOf(item));
        break;
      case 'exitedReviewMode':
        parts.setText('text', id, textOf(item.review) ?? '');
        break;
      case 'enteredReviewMode':
        this.#writer.notice(`Review started: ${textOf(item.review) ?? ''}`);
        return;
      case 'contextCompaction':
        this.#writer.notice('The conversation was compacted.');
        return;
      case 'subAgentActivity':
        return;
      default:
        this.#writer.custom(`codex:item/${textOf(item.type) ?? 'unknown'}`, boundValue(item));
        return;
    }
    parts.endText();
  }

  /** @returns true for a background task or an unknown command */
  #commandEnded(turnId: string | null, id: string, item: Fields): boolean {
    if (!this.#writer.isRunning(id)) {
      if (!this.#turns.isOver(turnId) || this.#commands.has(id)) {
        this.#commands.answered(id);
        return false;
      }
      this.#commands.found(id, item, this.#turns.taskOf(turnId));
    }
    this.#commands.ended(id, item);
    return true;
  }

  #begins(turnId: string | null, id: string, kind: Kind): void {
    if (this.#turns.open?.turnId !== turnId || this.#open.has(id)) return;
    setBounded(this.#open, id, kind, MAX_KNOWN);
    this.#revision += 1;
  }

  #parts(turnId: string | null): PartAssembler {
    return this.#writer.parts(this.#turns.taskOf(turnId));
  }
}

/** Part of a thread that is in the log. */
export interface HistoryProgress {
  /** Last turn whose end was written. */
  lastTurn: string | null;
  /** Turn left open. */
  openTurn: string | null;
  /** True if it was written from its first turn on. */
  isWhole: boolean;
}

/** A new part of a thread's history. */
export interface HistoryEntry {
  kind: 'turnStarted' | 'item' | 'turnCompleted';
  turnId: string;
  /** Epoch milliseconds. */
  at: number | null;
  /** `item`: the item; `turnCompleted`: the turn's end. */
  fields: Fields;
  /** True if it was already written, so that only the end of a task may be new. */
  isOld: boolean;
}

/** Entries held until it is known whether their turn is open. */
const MAX_HELD = 5_000;

/**
 * Finds the new entries in the pages of `thread/timeline/list`, oldest first.
 *
 * In an unknown thread only the open turn is new. The same holds if the last written turn is missing because a person
 * reverted it.
 */
export class History {
  readonly #entry: HistoryProgress;
  #isFound: boolean;
  #ofLastTurn: HistoryEntry[] = [];

  constructor(entry: HistoryProgress) {
    this.#entry = entry;
    this.#isFound = entry.isWhole && entry.lastTurn === null && entry.openTurn === null;
  }

  read(result: Fields): HistoryEntry[] {
    const entries = listOf(result.data).flatMap((entry) => entryOf(fieldsOf(entry)) ?? []);
    const fresh = entries.flatMap((entry) => this.#take(entry));
    const isLast = textOf(result.nextCursor) === null;
    if (!isLast || this.#isFound) return fresh;
    const last = this.#ofLastTurn;
    // Commands of an ended turn may add items after its end.
    return last.some(({ kind }) => kind === 'turnCompleted') ? fresh : [...fresh, ...last];
  }

  #take(entry: HistoryEntry): HistoryEntry[] {
    const { lastTurn, openTurn } = this.#entry;
    if (this.#isFound) return [entry];
    if (entry.kind === 'turnStarted' && entry.turnId === openTurn) {
      this.#isFound = true;
      return [entry];
    }
    if (entry.kind === 'turnStarted') this.#ofLastTurn = [];
    if (entry.kind === 'turnCompleted' && entry.turnId === lastTurn && openTurn === null) this.#isFound = true;
    if (this.#ofLastTurn.length < MAX_HELD) this.#ofLastTurn.push(entry);
    return entry.kind === 'item' ? [{ ...entry, isOld: true }] : [];
  }
}

function entryOf(native: Fields): HistoryEntry | null {
  const turnId = textOf(native.turnId);
  if (turnId === null) return null;
  const seconds = (value: unknown) => {
    const time = numberOf(value);
    return time === null ? null : time * 1_000;
  };
  const entry = { turnId, isOld: false };
  switch (native.type) {
    case 'turnStarted':
      return { ...entry, kind: 'turnStarted', at: seconds(native.startedAt), fields: {} };
    case 'item': {
      const item = fieldsOf(native.item);
      return { ...entry, kind: 'item', at: numberOf(item.completedAtMs) ?? numberOf(item.startedAtMs), fields: item };
    }
    case 'turnCompleted':
      return { ...entry, kind: 'turnCompleted', at: seconds(native.completedAt), fields: native };
    default:
      return null;
  }
}
