'use client';

import type { SessionDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { LISTED_STATES } from '@interlude/protocol/session-states';
import { fetchJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { useFleet, useFleetQuery } from '@/components/live/use-fleet';
import { PAGE, useLiveList } from '@/components/live/use-list';

/** Pages in the order in which the list shows them. */
const LISTED = LISTED_STATES.map((state) => `listed=${state}`).join('&');

/** The loaded sessions, and the request for more. */
export function useSessions() {
  const list = useFleet(({ sessions }) => sessions.list(ALL));
  const state = useLiveList<SessionList>({
    table: 'sessions',
    path: '/sessions',
    query: LISTED,
    next: list?.next,
    limit: PAGE,
    listed: list?.rows.length,
    put: (fleet, page, after) => fleet.putSessions(page, after),
  });
  return { list, state };
}

/** Loads the row of a session unless it is known. */
export function useSessionRow(sessionId = '') {
  return useFleetQuery({
    table: 'sessions',
    kind: 'row',
    of: sessionId,
    load: (signal) => fetchJson<SessionDetail>(`/sessions/${encodeURIComponent(sessionId)}`, signal),
    put: (fleet, detail) => fleet.putSession(detail),
    enabled: sessionId !== '',
  });
}

/** The session of the page. */
export function useSession(sessionId: string): SessionSummary {
  useSessionRow(sessionId);
  const session = useFleet(({ sessions }) => sessions.get(sessionId));
  if (session === undefined) throw new Error('The session’s row is not loaded');
  return session;
}
