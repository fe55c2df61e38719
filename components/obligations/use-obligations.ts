'use client';

import { comparePositions, ORIGIN } from '@interlude/protocol/position';
import type { Obligation, ObligationList, SessionObligations, SessionSummary } from '@interlude/protocol/read-models';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { ObligationRow } from '@/components/live/fleet-store';
import { useFleet, useFleetQuery } from '@/components/live/use-fleet';

/** Pending replies of a session, oldest first; undefined until loaded. @param enabled loads them */
export function useOpenObligations({ agentId, id }: Pick<SessionSummary, 'agentId' | 'id'>, enabled: boolean) {
  const query = useFleetQuery({
    table: 'obligations',
    kind: 'list',
    of: agentId,
    load: (signal) => fetchJson<ObligationList>(`/agents/${encodeURIComponent(agentId)}/reply-obligations`, signal),
    put: (fleet, list) => fleet.putObligations(agentId, list),
    enabled,
  });
  const list = useFleet((fleet) => fleet.obligations.list(agentId));
  const obligations = useMemo(() => list && openObligationsIn(list.rows, id), [list, id]);
  return { obligations, query };
}

const NOTHING: ReadonlySet<string> = new Set();

/** Messages whose reply is pending and not in progress: while a turn is open, its agent may be writing it. */
export function useUnansweredMessages(session: SessionSummary): ReadonlySet<string> {
  const isNeeded = session.owedCount > 0 && (session.openTurnId === null || session.away !== null);
  const { obligations } = useOpenObligations(session, isNeeded);
  const ids = isNeeded && obligations ? JSON.stringify(obligations.map(({ messageId }) => messageId)) : '[]';
  return useMemo(() => (ids === '[]' ? NOTHING : new Set(JSON.parse(ids) as string[])), [ids]);
}

/** Pending replies among the rows, oldest first. */
export function openObligationsIn(rows: readonly ObligationRow[], sessionId: string): ObligationRow[] {
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

/** True for a sender whose name is unknown, such as a person in the terminal. */
export function isUnnamed({ kind, id }: Obligation['from']): boolean {
  return kind === 'person' && (id === 'user' || id === 'operator');
}
