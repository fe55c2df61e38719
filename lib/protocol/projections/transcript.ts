import { subagentTaskId } from '../event-fields';
import { addTo } from '../fields';
import { readInterlude } from '../interlude-metadata';
import { comparePositions, laterPosition, type Position } from '../position';
import type { Item, TranscriptPage, Turn } from '../read-models';
import type { TurnHeader } from '../turn-places';
import { ItemDraft } from './item-draft';
import { foldItems, foldShownItems } from './items';
import type { EventEntry, Placement } from './placement';
import { type LoadedTurns, NOTHING_AHEAD, type TranscriptState } from './transcript-state';
import { placeEvents } from './turns';

// kept apart, so that a page can show a transcript before it loads the projections
export {
  abandonOlder,
  awaitOlder,
  EMPTY_TRANSCRIPT,
  type TranscriptState,
  transcriptFromPage,
} from './transcript-state';

/**
 * Prepends an older page and applies the live events since that page was read. Loaded turns stay unchanged. Ignores the
 * page if the transcript was reloaded after the request.
 */
export function prependTurns(state: TranscriptState, older: TranscriptPage): TranscriptState {
  if (state.waiting === null) return state;
  const loaded = new Set(state.turns.map((turn) => turn.id));
  const before = older.turns.filter((turn) => !loaded.has(turn.id));
  const isAhead = comparePositions(older.position, state.position) > 0;
  const readAt = before.map(({ id }) => [id, older.position] as const);
  const ahead = isAhead ? new Map([...state.ahead, ...readAt]) : state.ahead;
  const turns = [...before, ...state.turns];
  const known = new Map([...ahead, ...readAt]);
  const draft = new TranscriptDraft({ turns, incomplete: state.incomplete, waiting: null, ahead: known });
  for (const placement of state.waiting) draft.apply(placement);
  const from = before[0]?.position ?? state.from;
  return { ...state, ...draft.result(), from, hasMore: older.hasMore && !isRemovedUpTo(from, state.waiting), ahead };
}

/** Folds live events in; skips those at or before `state.position`. */
export function foldTranscript(state: TranscriptState, entries: readonly EventEntry[]): TranscriptState {
  const fresh = entries.filter((entry) => comparePositions(entry.position, state.position) > 0);
  if (fresh.length === 0) return state;
  const { places, placements } = placeEvents(state.places, fresh);
  const draft = new TranscriptDraft(state);
  for (const placement of placements) draft.apply(placement);
  const position = fresh.reduce((last, entry) => laterPosition(last, entry.position), state.position);
  const isBehind = [...state.ahead.values()].some((readAt) => comparePositions(readAt, position) > 0);
  const loaded = draft.result();
  const from = state.from ?? loaded.turns[0]?.position ?? null;
  const hasMore = state.hasMore && !isRemovedUpTo(from, placements);
  const ahead = isBehind ? state.ahead : NOTHING_AHEAD;
  return { ...state, ...loaded, ...removedHistory(placements), places, position, from, hasMore, ahead };
}

function removedHistory(placements: readonly Placement[]): Pick<TranscriptState, 'removed'> {
  const last = placements.findLast(({ removedUpTo }) => removedUpTo !== undefined)?.entry;
  if (last === undefined) return {};
  const { removed } = readInterlude(last.event);
  return removed === undefined ? {} : { removed: { ...removed, at: last.receivedAt } };
}

/** True if the turn at `from`, and so every older one, was removed. */
function isRemovedUpTo(from: Position | null, placements: readonly Placement[]): boolean {
  if (from === null) return false;
  return placements.some(({ removedUpTo }) => removedUpTo !== undefined && comparePositions(from, removedUpTo) <= 0);
}

/** Folds a subagent's events into the items of its task card. */
export function foldTaskItems(items: readonly Item[], taskId: string, entries: readonly EventEntry[]): Item[] {
  return foldItems(
    items,
    entries.filter((entry) => subagentTaskId(entry.event) === taskId),
  );
}

/** Maximum number of placements that wait for an older page. Beyond this, the page must be requested again. */
const MAX_WAITING = 10_000;

/** Applies placements to loaded turns and keeps those of unloaded turns for their page. */
class TranscriptDraft {
  readonly #turns: Turn[];
  readonly #index = new Map<string, number>();
  /** Events by turn, folded together by `#flush`. */
  readonly #pending = new Map<string, EventEntry[]>();
  readonly #ahead: LoadedTurns['ahead'];
  #waiting: Placement[] | null;
  /** Entities moved out of unloaded turns, by new turn. Their later events wait too. */
  readonly #moved = new Set<string>();
  #incomplete: boolean;
  #removed = false;

  constructor(state: LoadedTurns) {
    this.#turns = [...state.turns];
    this.#incomplete = state.incomplete;
    this.#ahead = state.ahead;
    this.#waiting = state.waiting === null ? null : [...state.waiting];
    for (const [index, turn] of this.#turns.entries()) this.#index.set(turn.id, index);
    for (const { moves } of state.waiting ?? []) for (const move of moves) this.#moved.add(keyOf(move));
  }

  apply(placement: Placement): void {
    const { entry, entityId, turnId } = placement;
    const deferred: Placement = { ...placement, turnId: null, turns: [], moves: [], removedTurnIds: [] };
    for (const header of placement.turns) if (!this.#putHeader(header, entry.position)) deferred.turns.push(header);
    for (const move of placement.moves) {
      // The move waits for its page.
      if (!this.#waits(move.entityId, move.fromTurnId) && this.#move(move, entry.position)) continue;
      deferred.moves.push(move);
      this.#moved.add(keyOf(move));
    }
    for (const id of placement.removedTurnIds) if (!this.#remove(id)) deferred.removedTurnIds.push(id);
    if (placement.removedUpTo !== undefined) this.#removeUpTo(placement.removedUpTo);
    if (turnId !== null) {
      if (this.#waits(entityId, turnId) || !this.#index.has(turnId)) deferred.turnId = turnId;
      else if (!this.#isKnown(turnId, entry.position)) addTo(this.#pending, turnId, entry);
    }
    this.#defer(deferred);
  }

  result(): Omit<LoadedTurns, 'ahead'> {
    for (const turnId of [...this.#pending.keys()]) this.#flush(turnId);
    const turns = this.#removed ? this.#turns.filter((turn, index) => this.#index.get(turn.id) === index) : this.#turns;
    return { turns, incomplete: this.#incomplete, waiting: this.#waiting };
  }

  #waits(entityId: string | null, turnId: string): boolean {
    return this.#waiting !== null && entityId !== null && this.#moved.has(keyOf({ entityId, toTurnId: turnId }));
  }

  /** Keeps a placement for the requested page. Without a request, a later page will include it. */
  #defer(deferred: Placement): void {
    const isMissing = deferred.moves.some(({ toTurnId }) => this.#index.has(toTurnId));
    if (this.#waiting === null) {
      this.#incomplete ||= isMissing;
      return;
    }
    const { turnId, turns, moves, removedTurnIds, removedUpTo } = deferred;
    const isEmptyPlacement = turnId === null && removedUpTo === undefined;
    if (isEmptyPlacement && turns.length + moves.length + removedTurnIds.length === 0) return;
    this.#waiting.push(deferred);
    if (this.#waiting.length <= MAX_WAITING) return;
    this.#incomplete ||= this.#moved.size > 0;
    this.#waiting = null;
  }

  /** True if a turn was read after this position. */
  #isKnown(turnId: string, position: Position): boolean {
    const readAt = this.#ahead.get(turnId);
    return readAt !== undefined && comparePositions(position, readAt) <= 0;
  }

  /** @returns false for the header of an unloaded older turn */
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

  /** @returns false if the source or target turn is not loaded */
  #move({ entityId, fromTurnId, toTurnId, position }: Placement['moves'][number], movedAt: Position): boolean {
    this.#flush(fromTurnId);
    this.#flush(toTurnId);
    const [from, to] = [this.#index.get(fromTurnId), this.#index.get(toTurnId)];
    const isInTarget = this.#isKnown(toTurnId, movedAt);
    if (to === undefined || from === undefined) return isInTarget;
    // The turn was read after the move.
    if (this.#isKnown(fromTurnId, movedAt)) return isInTarget;
    const [source, target] = [this.#turns[from] as Turn, this.#turns[to] as Turn];
    // Only the server has omitted items, which may appear or move now.
    this.#incomplete ||= source.omitted !== undefined || target.omitted !== undefined;
    const moving = source.items.filter((item) => {
      if (position === null) return item.id === entityId && item.kind === 'message';
      // A report about another session's task is a notice with its own id.
      return item.position === position && (item.id === entityId || item.kind === 'notice');
    });
    if (moving.length === 0) return true;
    this.#turns[from] = { ...source, items: source.items.filter((item) => !moving.includes(item)) };
    if (isInTarget) return true;
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

  /** @returns false for an unloaded turn */
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
    const shown = foldShownItems(turn, entries, turn.kind === 'none');
    this.#turns[at] = settleTurn({ ...turn, ...shown, items: sortByPosition(shown.items) });
  }
}

/** Sorts items that waited for an older page; returns the same list if sorted. */
function sortByPosition(items: Item[]): Item[] {
  const isSorted = items.every(
    (item, index) => index === 0 || comparePositions((items[index - 1] as Item).position, item.position) <= 0,
  );
  return isSorted ? items : items.toSorted((a, b) => comparePositions(a.position, b.position));
}

function keyOf({ entityId, toTurnId }: Pick<Placement['moves'][number], 'entityId' | 'toTurnId'>): string {
  return JSON.stringify([entityId, toTurnId]);
}

/**
 * Settles the open items of a closed turn: messages stop streaming, results of tool calls become unknown until they
 * arrive, and calls and requests of a failed or interrupted turn fail. Derived from the header, so live and reloaded
 * turns agree. Idempotent.
 */
export function settleTurn(turn: Turn): Turn {
  if (turn.kind === 'none') return turn;
  const isClosed = turn.state !== 'open';
  const isBroken = turn.state === 'failed' || turn.state === 'interrupted';
  let changed = false;
  const items = turn.items.map((item): Item => {
    const settled = isClosed ? settleItem(withSeenDelivery(item), isBroken, turn.endedAt) : withSeenDelivery(item);
    changed ||= settled !== item;
    return settled;
  });
  return changed ? { ...turn, items } : turn;
}

/** A turn contains only messages that it names, so the agent has seen them. */
function withSeenDelivery(item: Item): Item {
  if (item.kind !== 'message' || item.delivery === null || item.delivery === 'seen') return item;
  return { ...item, delivery: 'seen', deliveryReason: null };
}

function settleItem(item: Item, isBroken: boolean, endedAt: number | null): Item {
  switch (item.kind) {
    case 'message':
    case 'reasoning':
      return item.streaming ? { ...item, streaming: false } : item;
    case 'tool-call':
      return item.status === 'running' ? { ...item, status: isBroken ? 'failed' : 'unknown', endedAt } : item;
    case 'request':
      return isBroken && item.outcome === null ? { ...item, outcome: 'cancelled', resolvedAt: endedAt } : item;
    default:
      return item;
  }
}

/** Inserts an item by its position. */
function insertItem(items: readonly Item[], item: Item): Item[] {
  const index = items.findIndex((other) => comparePositions(other.position, item.position) > 0);
  return index < 0 ? [...items, item] : [...items.slice(0, index), item, ...items.slice(index)];
}

/** A redaction mark. */
const MARK = /\[redacted: [a-z0-9-]{1,40}\]/g;
const COUNTS = new WeakMap<Turn, number>();

/** Number of redacted secrets shown in turns. Cached per turn object. */
export function countRedacted(turns: readonly Turn[]): number {
  return turns.reduce((sum, turn) => {
    const count = COUNTS.get(turn) ?? countMarks(turn);
    COUNTS.set(turn, count);
    return sum + count;
  }, 0);
}

function countMarks(turn: Turn): number {
  let count = 0;
  const look = (value: unknown): void => {
    if (typeof value === 'string') count += value.includes('[redacted: ') ? (value.match(MARK)?.length ?? 0) : 0;
    else if (typeof value === 'object' && value !== null) for (const field of Object.values(value)) look(field);
  };
  for (const item of turn.items) {
    // `argsText` repeats the arguments.
    look(item.kind === 'tool-call' ? { ...item, args: null } : item);
  }
  return count;
}
