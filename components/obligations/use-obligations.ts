'use client';

import { useMemo } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { useLiveQuery } from '@/components/live/use-live-query';
import { comparePositions } from '@/lib/protocol/position';
import type { Obligation, ObligationList, SessionSummary } from '@/lib/protocol/read-models';

type Owed = ObligationList['obligations'][number];

/** What an agent owes, oldest first, kept current while it is looked at. */
export function useObligations(agentId: string, enabled: boolean) {
  return useLiveQuery<ObligationList>({
    key: ['obligations', agentId],
    topic: 'fleet',
    enabled,
    load: (signal) => fetchJson(`/agents/${encodeURIComponent(agentId)}/reply-obligations`, signal),
    fold: (list, frames) => ({
      position: (frames.at(-1) as RowFrame).id,
      obligations: foldObligationRows(
        list.obligations,
        frames.flatMap((frame) => (frame.event === 'obligation' && frame.data.agentId === agentId ? [frame.data] : [])),
      ),
    }),
  });
}

const NOTHING: ReadonlySet<string> = new Set();

/** The session's messages that wait for a reply nobody is at: while a turn is open, it may be on its way. */
export function useOwedMessages(session: SessionSummary): ReadonlySet<string> {
  const isLookedFor = session.owedCount > 0 && (session.openTurnId === null || session.away !== null);
  const { data } = useObligations(session.agentId, isLookedFor);
  const ids = isLookedFor
    ? JSON.stringify(data?.obligations.flatMap((one) => (one.sessionId === session.id ? [one.messageId] : [])) ?? [])
    : '[]';
  return useMemo(() => (ids === '[]' ? NOTHING : new Set(JSON.parse(ids) as string[])), [ids]);
}

/** What is settled leaves the list, what is new stands at its end: a message is owed from its end on. */
export function foldObligationRows(list: Owed[], rows: readonly Obligation[]): Owed[] {
  if (rows.length === 0) return list;
  const keyOf = ({ sessionId, messageId }: Owed) => JSON.stringify([sessionId, messageId]);
  const owed = new Map(list.map((one) => [keyOf(one), one]));
  for (const row of [...rows].sort((a, b) => comparePositions(a.position, b.position))) {
    const { messageId, sessionId, from, text, sentAt } = row;
    if (row.state === 'owed') owed.set(keyOf(row), { messageId, sessionId, from, text, sentAt });
    else owed.delete(keyOf(row));
  }
  return [...owed.values()];
}
