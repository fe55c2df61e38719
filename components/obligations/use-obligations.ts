'use client';

import { comparePositions, ORIGIN } from '@interlude/protocol/position';
import type { ObligationList, SessionObligations, SessionSummary } from '@interlude/protocol/read-models';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { OwedReply } from '@/components/live/fleet-store';
import { useFleet, useFleetQuery } from '@/components/live/use-fleet';

/** Pending replies of a session, oldest first; undefined until loaded. @param enabled loads them */
export function useOwed({ agentId, id }: Pick<SessionSummary, 'agentId' | 'id'>, enabled: boolean) {
  const query = useFleetQuery({
    table: 'obligations',
    kind: 'list',
    of: agentId,
    load: (signal) => fetchJson<ObligationList>(`/agents/${encodeURIComponent(agentId)}/reply-obligations`, signal),
    put: (fleet, list) => fleet.putObligations(agentId, list),
    enabled,
  });
  const list = useFleet((fleet) => fleet.obligations.list(agentId));
  const owed = useMemo(() => list && owedIn(list.rows, id), [list, id]);
  return { owed, query };
}

const NOTHING: ReadonlySet<string> = new Set();

/** Messages whose reply is pending and not in progress: while a turn is open, its agent may be writing it. */
export function useOwedMessages(session: SessionSummary): ReadonlySet<string> {
  const isLookedFor = session.owedCount > 0 && (session.openTurnId === null || session.away !== null);
  const { owed } = useOwed(session, isLookedFor);
  const ids = isLookedFor && owed ? JSON.stringify(owed.map(({ messageId }) => messageId)) : '[]';
  return useMemo(() => (ids === '[]' ? NOTHING : new Set(JSON.parse(ids) as string[])), [ids]);
}

/** Pending replies among the rows, oldest first. */
export function owedIn(rows: readonly OwedReply[], sessionId: string): OwedReply[] {
  return rows
    .filter((row) => row.sessionId === sessionId && row.state === 'owed')
    .sort((a, b) => comparePositions(a.position ?? ORIGIN, b.position ?? ORIGIN));
}

/** The session's pending and last settled replies. Reloads as the session changes. */
export function useSessionObligations({ id, updatedPosition }: Pick<SessionSummary, 'id' | 'updatedPosition'>) {
  return useQuery({
    queryKey: ['obligations', id, updatedPosition],
    queryFn: ({ signal }) => fetchJson<SessionObligations>(`/sessions/${encodeURIComponent(id)}/obligations`, signal),
    placeholderData: keepPreviousData,
  });
}
