import type { Position } from '../position';
import type { RemovedHistory, TranscriptPage, Turn } from '../read-models';
import type { TurnPlaces } from '../turn-places';
import { NO_PLACES, type Placement } from './placement';

/**
 * A session's transcript in the browser: the newest page, older pages before it, and live events folded in.
 *
 * Ordering: events in position order; older pages may arrive at any time.
 * Failure: events for turns that are not loaded wait for an older page; `incomplete` asks for a reload. At equal
 * positions, the turns equal those on the server, because both run the same projections from the same `places`.
 */
export interface TranscriptState extends LoadedTurns {
  position: Position;
  /** Position of the oldest turn loaded so far, even if removed since. Null before the first. */
  from: Position | null;
  /** True if the server has turns older than `from`. */
  hasMore: boolean;
  places: TurnPlaces;
  /** Set if secrets are redacted for this reader. */
  redacts?: true;
  /** The turns removed by retention, if any. */
  removed?: RemovedHistory;
}

export const NOTHING_AHEAD: ReadonlyMap<string, Position> = new Map();

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

/** @param page the newest page, read without `before` */
export function transcriptFromPage(page: TranscriptPage): TranscriptState {
  const { turns, position, hasMore, places = NO_PLACES, redacted, removed } = page;
  const redacts = redacted === undefined ? {} : { redacts: true as const };
  const from = turns[0]?.position ?? null;
  return { ...EMPTY_TRANSCRIPT, turns, position, from, hasMore, places, ...redacts, ...(removed && { removed }) };
}

/** Call before requesting an older page: from then on, events for unloaded turns are kept for that page. */
export function awaitOlder(state: TranscriptState): TranscriptState {
  return { ...state, waiting: [] };
}

/** Call if the older page fails to load. Items that have moved out of that page since the request are then missing. */
export function abandonOlder(state: TranscriptState): TranscriptState {
  const isMissing = state.waiting?.some(({ moves }) => moves.length > 0) ?? false;
  return { ...state, waiting: null, incomplete: state.incomplete || isMissing };
}

/** The loaded part of a transcript. */
export interface LoadedTurns {
  /** In order. Unchanged turns and items stay the same objects. */
  turns: readonly Turn[];
  /** True if an item moved out of a turn that is not fully loaded. Reload the page. */
  incomplete: boolean;
  /** Placements in unloaded turns since the request for an older page; null without a request. */
  waiting: readonly Placement[] | null;
  /** Positions of turns read later than the rest. They contain all events up to that position. */
  ahead: ReadonlyMap<string, Position>;
}
