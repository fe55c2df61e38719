'use client';

import type { SessionList } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { FoundRows, MoreRows } from '@/components/live/more-rows';
import type { MorePages } from '@/components/live/use-fleet';
import type { useListSearch } from '@/components/live/use-list-search';

/** The end of the list of sessions: how much more there is of it, or of what was searched for. */
export function SessionListEnd(props: {
  /** Null where nothing is searched for. */
  search: ReturnType<typeof useListSearch<SessionList>> | null;
  states: readonly SessionState[];
  more: MorePages;
  counts: SessionList['counts'];
  listed: number;
  onAll: () => void;
}) {
  const { search, states, more, counts, listed, onAll } = props;
  if (search === null) return <MoreRows {...more} listed={listed} count={sumOf(counts, [])} what="sessions" />;
  const count = sumOf(search.found?.counts, states);
  return <FoundRows search={search} listed={listed} count={count} one="session" onAll={onAll} />;
}

function sumOf(counts: SessionList['counts'] | undefined, states: readonly SessionState[]): number {
  return SESSION_STATES.filter((state) => states.length === 0 || states.includes(state)).reduce(
    (sum, state) => sum + (counts?.[state] ?? 0),
    0,
  );
}
