import { subagentTaskId } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { comparePositions, laterPosition, type Position } from '../position';
import type { Item, RemovedHistory, TranscriptPage } from '../read-models';
import type { TurnPlaces } from '../turn-places';
import type { EventEntry } from './event-entry';
import { foldItems } from './items';
import { NO_PLACES, type Placement } from './placement';
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
  /** Position of the oldest turn loaded so far, even if it was removed since. Null before any is loaded. */
  from: Position | null;
  /** There are turns older than `from` on the server. */
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
  from: null,
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
  const from = turns[0]?.position ?? null;
  return { ...EMPTY_TRANSCRIPT, turns, position, from, hasMore, places, ...redacts, ...(removed && { removed }) };
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
  const from = before[0]?.position ?? state.from;
  return { ...state, ...draft.result(), from, hasMore: older.hasMore && !isCutOff(from, state.waiting), ahead };
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
  const loaded = draft.result();
  const from = state.from ?? loaded.turns[0]?.position ?? null;
  const hasMore = state.hasMore && !isCutOff(from, placements);
  const ahead = isBehind ? state.ahead : NOTHING_AHEAD;
  return { ...state, ...loaded, ...toldRemoved(placements), places, position, from, hasMore, ahead };
}

function toldRemoved(placements: readonly Placement[]): Pick<TranscriptState, 'removed'> {
  const last = placements.findLast(({ removedUpTo }) => removedUpTo !== undefined)?.entry;
  if (last === undefined) return {};
  const { removed } = readInterlude(last.event);
  return removed === undefined ? {} : { removed: { ...removed, at: last.receivedAt } };
}

/** Whether the turn at `from` was removed, and with it every older one. */
function isCutOff(from: Position | null, placements: readonly Placement[]): boolean {
  if (from === null) return false;
  return placements.some(({ removedUpTo }) => removedUpTo !== undefined && comparePositions(from, removedUpTo) <= 0);
}

/** What a subagent said and did, for the card of its task. */
export function foldTaskItems(items: readonly Item[], taskId: string, entries: readonly EventEntry[]): Item[] {
  return foldItems(
    items,
    entries.filter((entry) => subagentTaskId(entry.event) === taskId),
  );
}
