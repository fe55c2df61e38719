import { type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';

/** How far a thread has been told. */
export interface HistoryProgress {
  /** The last turn whose end was told. */
  lastTurn: string | null;
  /** The turn that is open by what was told. */
  openTurn: string | null;
  /** It was told from its first turn on. */
  isWhole: boolean;
}

/** A part of a thread's history that is new. */
export interface HistoryEntry {
  kind: 'turnStarted' | 'item' | 'turnCompleted';
  turnId: string;
  /** When it happened, epoch milliseconds. */
  at: number | null;
  /** `item`: the item; `turnCompleted`: the turn's end. */
  fields: Fields;
  /** It belongs to what was told already; only the end of a task may be news in it. */
  isOld: boolean;
}

/** Most entries of a turn that are held until it is known whether it is still open. */
const MAX_HELD = 5_000;

/**
 * What is new in the pages of `thread/timeline/list`, which begin at the beginning and end with the present.
 *
 * Of a thread that nobody has told of, only the turn that is open is new: what came before is history. The same holds
 * where the history does not have the turn that was told last, because a person has reverted it.
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
    // What a command of an ended turn has done since stands behind its end.
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
