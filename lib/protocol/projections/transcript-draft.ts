import { addTo } from '../fields';
import { comparePositions, type Position } from '../position';
import type { Item, Turn } from '../read-models';
import type { TurnHeader } from '../turn-places';
import type { EventEntry } from './event-entry';
import { ItemDraft } from './item-draft';
import { foldShown } from './items';
import type { Placement } from './placement';
import { insertItem, settleTurn } from './turn-page';

/** Most placements that wait for an older page. Beyond that, the page is asked for again. */
const MAX_WAITING = 10_000;

/** The loaded part of a transcript. */
export interface LoadedTurns {
  /** In order. Turns and items that did not change keep their identity. */
  turns: readonly Turn[];
  /** Something moved out of a turn that is not loaded, or only in part: load the page again. */
  incomplete: boolean;
  /** While an older page is on its way: what has happened since in turns that are not loaded. Otherwise null. */
  waiting: readonly Placement[] | null;
  /** Turns that were read later than the rest, and where: they contain everything up to that position. */
  ahead: ReadonlyMap<string, Position>;
}

/** The turns of a transcript while placements are applied to them. What is about turns that are not loaded is put aside. */
export class TranscriptDraft {
  readonly #turns: Turn[];
  readonly #index = new Map<string, number>();
  /** By turn: events to be folded in one go. */
  readonly #pending = new Map<string, EventEntry[]>();
  readonly #ahead: LoadedTurns['ahead'];
  #waiting: Placement[] | null;
  /** Entities that moved out of a turn that is not loaded, with their new turn: what follows about them waits too. */
  readonly #moved = new Set<string>();
  #incomplete: boolean;
  #removed = false;

  constructor(state: LoadedTurns) {
    this.#turns = [...state.turns];
    this.#incomplete = state.incomplete;
    this.#ahead = state.ahead;
    this.#waiting = state.waiting === null ? null : [...state.waiting];
    for (const [at, turn] of this.#turns.entries()) this.#index.set(turn.id, at);
    for (const { moves } of state.waiting ?? []) for (const move of moves) this.#moved.add(keyOf(move));
  }

  apply(placement: Placement): void {
    const { entry, entityId, turnId } = placement;
    const missed: Placement = { ...placement, turnId: null, turns: [], moves: [], removedTurnIds: [] };
    for (const header of placement.turns) if (!this.#putHeader(header, entry.position)) missed.turns.push(header);
    for (const move of placement.moves) {
      // what waits for its page moves on when the page has come
      if (!this.#waits(move.entityId, move.fromTurnId) && this.#move(move, entry.position)) continue;
      missed.moves.push(move);
      this.#moved.add(keyOf(move));
    }
    for (const id of placement.removedTurnIds) if (!this.#remove(id)) missed.removedTurnIds.push(id);
    if (placement.removedUpTo !== undefined) this.#removeUpTo(placement.removedUpTo);
    if (turnId !== null) {
      if (this.#waits(entityId, turnId) || !this.#index.has(turnId)) missed.turnId = turnId;
      else if (!this.#isKnown(turnId, entry.position)) addTo(this.#pending, turnId, entry);
    }
    this.#putAside(missed);
  }

  result(): Omit<LoadedTurns, 'ahead'> {
    for (const turnId of [...this.#pending.keys()]) this.#flush(turnId);
    const turns = this.#removed ? this.#turns.filter((turn, at) => this.#index.get(turn.id) === at) : this.#turns;
    return { turns, incomplete: this.#incomplete, waiting: this.#waiting };
  }

  #waits(entityId: string | null, turnId: string): boolean {
    return this.#waiting !== null && entityId !== null && this.#moved.has(keyOf({ entityId, toTurnId: turnId }));
  }

  /** The page on its way may contain what this is about. If none is on its way, a later page will be up to date. */
  #putAside(missed: Placement): void {
    const isMissing = missed.moves.some(({ toTurnId }) => this.#index.has(toTurnId));
    if (this.#waiting === null) {
      this.#incomplete ||= isMissing;
      return;
    }
    const { turnId, turns, moves, removedTurnIds, removedUpTo } = missed;
    const isNothing = turnId === null && removedUpTo === undefined;
    if (isNothing && turns.length + moves.length + removedTurnIds.length === 0) return;
    this.#waiting.push(missed);
    if (this.#waiting.length <= MAX_WAITING) return;
    this.#incomplete ||= this.#moved.size > 0;
    this.#waiting = null;
  }

  /** Whether a turn was read so late that it contains what is at this position. */
  #isKnown(turnId: string, position: Position): boolean {
    const readAt = this.#ahead.get(turnId);
    return readAt !== undefined && comparePositions(position, readAt) <= 0;
  }

  /** @returns false if it is the header of a turn that began before and is not loaded */
  #putHeader(header: TurnHeader, position: Position): boolean {
    const at = this.#index.get(header.id);
    if (at === undefined) {
      if (comparePositions(header.position, position) < 0) return false;
      this.#index.set(header.id, this.#turns.length);
      this.#turns.push({ ...header, items: [] });
    } else if (!this.#isKnown(header.id, position)) {
      this.#flush(header.id);
      const turn = this.#turns[at] as Turn;
      this.#turns[at] = settleTurn({ ...turn, ...header, position: turn.position, startedAt: turn.startedAt });
    }
    return true;
  }

  /** @returns false if only a page that is not loaded can tell what moved, or where it went */
  #move({ entityId, fromTurnId, toTurnId, position }: Placement['moves'][number], movedAt: Position): boolean {
    this.#flush(fromTurnId);
    this.#flush(toTurnId);
    const [from, to] = [this.#index.get(fromTurnId), this.#index.get(toTurnId)];
    const isThere = this.#isKnown(toTurnId, movedAt);
    if (to === undefined || from === undefined) return isThere;
    // The turn was read after it had gone.
    if (this.#isKnown(fromTurnId, movedAt)) return isThere;
    const [source, target] = [this.#turns[from] as Turn, this.#turns[to] as Turn];
    // An older item takes the place of the one that goes, or that one was not shown itself: only the server has them.
    this.#incomplete ||= source.omitted !== undefined || target.omitted !== undefined;
    const moving = source.items.filter((item) => {
      if (position === null) return item.id === entityId && item.kind === 'message';
      // a report about another session's task is a notice, which has an id of its own
      return item.position === position && (item.id === entityId || item.kind === 'notice');
    });
    if (moving.length === 0) return true;
    this.#turns[from] = { ...source, items: source.items.filter((item) => !moving.includes(item)) };
    if (isThere) return true;
    const known = new Set(target.items.filter((item) => item.kind === 'message').map((item) => item.id));
    const items = moving
      .filter((item) => item.kind !== 'message' || !known.has(item.id))
      .reduce<Item[]>(insertItem, [...target.items]);
    this.#turns[to] = settleTurn({ ...target, ...new ItemDraft({ items, omitted: target.omitted }).shown() });
    return true;
  }

  #removeUpTo(position: Position): void {
    for (const turn of this.#turns) if (comparePositions(turn.position, position) <= 0) this.#remove(turn.id);
  }

  /** @returns false if it is not loaded */
  #remove(turnId: string): boolean {
    this.#pending.delete(turnId);
    const isLoaded = this.#index.delete(turnId);
    this.#removed ||= isLoaded;
    return isLoaded;
  }

  #flush(turnId: string): void {
    const entries = this.#pending.get(turnId);
    const at = this.#index.get(turnId);
    if (entries === undefined || at === undefined) return;
    this.#pending.delete(turnId);
    const turn = this.#turns[at] as Turn;
    const shown = foldShown(turn, entries, turn.kind === 'none');
    this.#turns[at] = settleTurn({ ...turn, ...shown, items: inOrder(shown.items) });
  }
}

/** The same list, unless something that waited for an older page has come after later items. */
function inOrder(items: Item[]): Item[] {
  const isSorted = items.every(
    (item, at) => at === 0 || comparePositions((items[at - 1] as Item).position, item.position) <= 0,
  );
  return isSorted ? items : items.toSorted((a, b) => comparePositions(a.position, b.position));
}

function keyOf({ entityId, toTurnId }: Pick<Placement['moves'][number], 'entityId' | 'toTurnId'>): string {
  return JSON.stringify([entityId, toTurnId]);
}
