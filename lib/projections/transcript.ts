import { comparePositions, laterPosition, type Position } from '@/lib/protocol/position';
import type { Item, TranscriptPage, Turn } from '@/lib/protocol/read-models';
import { NO_PLACES, type TurnHeader, type TurnPlaces } from '@/lib/protocol/turn-places';
import type { EventEntry } from './event-entry';
import { subagentTaskId } from './event-fields';
import { ItemDraft } from './item-draft';
import { foldItems, foldShown } from './items';
import { insertItem, settleTurn } from './turn-page';
import { type Placement, placeEvents } from './turns';

/**
 * A session's transcript in a browser: the newest page, older pages put before it, and live events folded in.
 *
 * Live = reloaded: at equal positions this state's turns equal those the server reads, because both sides run the same
 * two projections (`placeEvents`, `foldItems`) from the same `places`.
 */
export interface TranscriptState {
  /** In order. Turns and items that did not change keep their identity. */
  turns: readonly Turn[];
  position: Position;
  /** There are older turns than `turns[0]` on the server. */
  hasMore: boolean;
  places: TurnPlaces;
  /** Something moved out of a turn that is not loaded, or not whole: load the page again. */
  incomplete: boolean;
}

export const EMPTY_TRANSCRIPT: TranscriptState = {
  turns: [],
  position: '0',
  hasMore: false,
  places: NO_PLACES,
  incomplete: false,
};

/** @param page the newest page: the one read without `before` */
export function transcriptFromPage(page: TranscriptPage): TranscriptState {
  return {
    turns: page.turns,
    position: page.position,
    hasMore: page.hasMore,
    places: page.places ?? NO_PLACES,
    incomplete: false,
  };
}

/** Puts an older page before what is loaded. Turns that are loaded already stay as they are: they are newer. */
export function prependTurns(state: TranscriptState, older: TranscriptPage): TranscriptState {
  const loaded = new Set(state.turns.map((turn) => turn.id));
  const before = older.turns.filter((turn) => !loaded.has(turn.id));
  return { ...state, turns: [...before, ...state.turns], hasMore: older.hasMore };
}

/** Folds live events in. Those at or before `state.position` are known and skipped. */
export function foldTranscript(state: TranscriptState, entries: readonly EventEntry[]): TranscriptState {
  const fresh = entries.filter((entry) => comparePositions(entry.position, state.position) > 0);
  if (fresh.length === 0) return state;
  const { places, placements } = placeEvents(state.places, fresh);
  const draft = new TranscriptDraft(state);
  for (const placement of placements) draft.apply(placement);
  const position = fresh.reduce((last, entry) => laterPosition(last, entry.position), state.position);
  return { ...state, ...draft.result(), places, position };
}

/** What a subagent said and did, for the card of its task. */
export function foldTaskItems(items: readonly Item[], taskId: string, entries: readonly EventEntry[]): Item[] {
  return foldItems(
    items,
    entries.filter((entry) => subagentTaskId(entry.event) === taskId),
  );
}

class TranscriptDraft {
  readonly #turns: Turn[];
  readonly #index = new Map<string, number>();
  readonly #pending = new Map<string, EventEntry[]>();
  #incomplete: boolean;
  #removed = false;
  readonly #oldest: Position | null;

  constructor(state: TranscriptState) {
    this.#turns = [...state.turns];
    this.#incomplete = state.incomplete;
    this.#oldest = state.hasMore ? (state.turns[0]?.position ?? null) : null;
    for (const [at, turn] of this.#turns.entries()) this.#index.set(turn.id, at);
  }

  apply(placement: Placement): void {
    for (const header of placement.turns) this.#putHeader(header);
    for (const move of placement.moves) this.#move(move);
    for (const id of placement.removedTurnIds) this.#remove(id);
    const turnId = placement.turnId;
    if (turnId === null || !this.#index.has(turnId)) return;
    // Runs of deltas for one turn are folded in one go.
    const waiting = this.#pending.get(turnId);
    if (waiting === undefined) this.#pending.set(turnId, [placement.entry]);
    else waiting.push(placement.entry);
  }

  result(): Pick<TranscriptState, 'turns' | 'incomplete'> {
    for (const turnId of [...this.#pending.keys()]) this.#flush(turnId);
    const turns = this.#removed ? this.#turns.filter((turn) => this.#index.has(turn.id)) : this.#turns;
    return { turns, incomplete: this.#incomplete };
  }

  #putHeader(header: TurnHeader): void {
    const at = this.#index.get(header.id);
    if (at === undefined) {
      this.#index.set(header.id, this.#turns.length);
      this.#turns.push({ ...header, items: [] });
      return;
    }
    const turn = this.#turns[at] as Turn;
    this.#turns[at] = settleTurn({ ...turn, ...header, position: turn.position, startedAt: turn.startedAt });
  }

  #move({ entityId, fromTurnId, toTurnId, position }: Placement['moves'][number]): void {
    this.#flush(fromTurnId);
    this.#flush(toTurnId);
    const [from, to] = [this.#index.get(fromTurnId), this.#index.get(toTurnId)];
    if (to === undefined) return;
    if (from === undefined) {
      this.#incomplete ||= this.#oldest !== null;
      return;
    }
    const [source, target] = [this.#turns[from] as Turn, this.#turns[to] as Turn];
    // An older item comes in the place of the one that goes, or that one was not shown itself: only a server has them.
    this.#incomplete ||= source.omitted !== undefined || target.omitted !== undefined;
    const moving = source.items.filter((item) => {
      if (position === null) return item.id === entityId && item.kind === 'message';
      // what is told of a task of another session is a notice, which has an id of its own
      return item.position === position && (item.id === entityId || item.kind === 'notice');
    });
    if (moving.length === 0) return;
    this.#turns[from] = { ...source, items: source.items.filter((item) => !moving.includes(item)) };
    const known = new Set(target.items.filter((item) => item.kind === 'message').map((item) => item.id));
    const items = moving
      .filter((item) => item.kind !== 'message' || !known.has(item.id))
      .reduce<Item[]>(insertItem, [...target.items]);
    this.#turns[to] = settleTurn({ ...target, ...new ItemDraft({ items, omitted: target.omitted }).shown() });
  }

  #remove(turnId: string): void {
    this.#pending.delete(turnId);
    this.#removed = this.#index.delete(turnId) || this.#removed;
  }

  #flush(turnId: string): void {
    const entries = this.#pending.get(turnId);
    const at = this.#index.get(turnId);
    if (entries === undefined || at === undefined) return;
    this.#pending.delete(turnId);
    const turn = this.#turns[at] as Turn;
    this.#turns[at] = settleTurn({ ...turn, ...foldShown(turn, entries, turn.kind === 'none') });
  }
}
