import { comparePositions, laterPosition, type Position } from '@/lib/protocol/position';
import type { Item, RemovedHistory, TranscriptPage, Turn } from '@/lib/protocol/read-models';
import { NO_PLACES, type TurnPlaces } from '@/lib/protocol/turn-places';
import type { EventEntry } from './event-entry';
import { subagentTaskId } from './event-fields';
import { interludeOf } from './interlude-metadata';
import { foldItems } from './items';
import type { Placement } from './placement';
import { type LoadedTurns, TranscriptDraft } from './transcript-draft';
import { placeEvents } from './turns';

/**
 * A session's transcript in a browser: the newest page, older pages put before it, and live events folded in.
 *
 * Live = reloaded: at equal positions this state's turns equal those the server reads, because both sides run the same
 * two projections (`placeEvents`, `foldItems`) from the same `places`.
 */
export interface TranscriptState extends LoadedTurns {
  position: Position;
  /** There are older turns than `turns[0]` on the server. */
  hasMore: boolean;
  places: TurnPlaces;
  /** Secrets are left out of what this reader is told. Left out if they are not. */
  redacts?: true;
  /** The oldest turns, which retention has removed. Left out while none was. */
  removed?: RemovedHistory;
}

const NOTHING_AHEAD: ReadonlyMap<string, Position> = new Map();

export const EMPTY_TRANSCRIPT: TranscriptState = {
  turns: [],
  position: '0',
  hasMore: false,
  places: NO_PLACES,
  incomplete: false,
  waiting: null,
  ahead: NOTHING_AHEAD,
};

/** @param page the newest page: the one read without `before` */
export function transcriptFromPage(page: TranscriptPage): TranscriptState {
  const { turns, position, hasMore, places = NO_PLACES, redacted, removed } = page;
  const redacts = redacted === undefined ? {} : { redacts: true as const };
  return { ...EMPTY_TRANSCRIPT, turns, position, hasMore, places, ...redacts, ...(removed && { removed }) };
}

/** To be called before an older page is asked for: from here on, what that page may lack is kept for it. */
export function awaitOlder(state: TranscriptState): TranscriptState {
  return { ...state, waiting: [] };
}

/** The older page will not come. What has moved out of it meanwhile is missing from both. */
export function giveUpOlder(state: TranscriptState): TranscriptState {
  const isMissing = state.waiting?.some(({ moves }) => moves.length > 0) ?? false;
  return { ...state, waiting: null, incomplete: state.incomplete || isMissing };
}

/**
 * Puts an older page before what is loaded, and brings it up to date: it was read at its own position, and live events
 * have come since, or are still to come. Turns that are already loaded stay as they are. A page that is no longer
 * awaited is ignored: the transcript has been loaded again since it was asked for.
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
  const hasMore = older.hasMore && !isCutOff(turns, state.waiting);
  return { ...state, ...draft.result(), hasMore, ahead };
}

/** Folds live events in. Those at or before `state.position` are known and skipped. */
export function foldTranscript(state: TranscriptState, entries: readonly EventEntry[]): TranscriptState {
  const fresh = entries.filter((entry) => comparePositions(entry.position, state.position) > 0);
  if (fresh.length === 0) return state;
  const { places, placements } = placeEvents(state.places, fresh);
  const draft = new TranscriptDraft(state);
  for (const placement of placements) draft.apply(placement);
  const position = fresh.reduce((last, entry) => laterPosition(last, entry.position), state.position);
  const isBehind = [...state.ahead.values()].some((readAt) => comparePositions(readAt, position) > 0);
  const folded = { ...state, ...draft.result(), places, position, ahead: isBehind ? state.ahead : NOTHING_AHEAD };
  return { ...folded, ...toldRemoved(placements), hasMore: state.hasMore && !isCutOff(state.turns, placements) };
}

function toldRemoved(placements: readonly Placement[]): Pick<TranscriptState, 'removed'> {
  const last = placements.findLast(({ removedUpTo }) => removedUpTo !== undefined)?.entry;
  if (last === undefined) return {};
  const { removed } = interludeOf(last.event);
  return removed === undefined ? {} : { removed: { ...removed, at: last.receivedAt } };
}

/** Whether some of these turns were removed: then nothing is left before the others. */
function isCutOff([oldest]: readonly Turn[], placements: readonly Placement[]): boolean {
  if (oldest === undefined) return false;
  return placements.some(
    ({ removedUpTo }) => removedUpTo !== undefined && comparePositions(oldest.position, removedUpTo) <= 0,
  );
}

/** What a subagent said and did, for the card of its task. */
export function foldTaskItems(items: readonly Item[], taskId: string, entries: readonly EventEntry[]): Item[] {
  return foldItems(
    items,
    entries.filter((entry) => subagentTaskId(entry.event) === taskId),
  );
}
