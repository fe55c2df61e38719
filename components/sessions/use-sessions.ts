'use client';

import type { SessionDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { useFleet, useFleetQuery, useFleetStores, useMorePages } from '@/components/live/use-fleet';

/** Sessions of one page, and those that are added with each asking. */
const PAGE = 100;
/** Most sessions of one answer. */
const MOST_AT_ONCE = 1_000;
/** Of what is not listed only the server knows how much there is: it is asked again at most this often. */
const COUNT_AGAIN_MS = 5_000;

const pageAfter = (after: string, limit = PAGE, signal?: AbortSignal) =>
  fetchJson<SessionList>(`/sessions?${new URLSearchParams({ after, limit: String(limit) })}`, signal);

/** The sessions that are loaded, the most urgent ones first, and the way to the others. */
export function useSessions() {
  const { fleet } = useFleetStores();
  const list = useFleet(({ listedSessions }) => listedSessions);
  useFleetQuery({
    table: 'sessions',
    kind: 'list',
    of: ALL,
    // What was listed before a gap is listed after it.
    load: (signal) =>
      pageAfter('0', Math.min(MOST_AT_ONCE, Math.max(PAGE, fleet.listedSessions?.sessions.length ?? 0)), signal),
    take: (fleet, page) => fleet.takeSessions(page),
  });
  useQuery({
    queryKey: ['session-counts'],
    queryFn: async ({ signal }) => {
      const { counts, position } = await pageAfter('0', 1, signal);
      fleet.takeCounts(counts, position);
      return position;
    },
    enabled: list?.countsAreOld ?? false,
    refetchInterval: COUNT_AGAIN_MS,
  });
  const more = useMorePages({
    of: 'sessions',
    next: list?.next,
    load: (after) => pageAfter(after),
    take: (fleet, page, after) => fleet.takeSessions(page, after),
  });
  return { list, more };
}

/** One session, whose page this is. */
export function useSession(sessionId: string): SessionSummary {
  useFleetQuery({
    table: 'sessions',
    kind: 'row',
    of: sessionId,
    load: (signal) => fetchJson<SessionDetail>(`/sessions/${encodeURIComponent(sessionId)}`, signal),
    take: (fleet, detail) => fleet.takeSession(detail),
  });
  const session = useFleet(({ sessions }) => sessions.get(sessionId));
  if (session === undefined) throw new Error('No row of this session');
  return session;
}
