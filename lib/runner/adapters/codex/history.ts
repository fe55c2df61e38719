import { type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';

/** Part of a thread that is in the log. */
export interface HistoryProgress {
  /** Last turn whose end was written. */
  lastTurn: string | null;
  /** Turn left open. */
  openTurn: string | null;
  /** Written from its first turn on. */
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
  /** Already written; only the end of a task may be new. */
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
    // Later items of an ended turn's commands follow its end.
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
