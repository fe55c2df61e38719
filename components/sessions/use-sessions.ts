'use client';

import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { useLiveQuery } from '@/components/live/use-live-query';
import { useMorePages } from '@/components/live/use-more-pages';
import { comparePositions } from '@/lib/protocol/position';
import type { SessionDetail, SessionList, SessionSummary } from '@/lib/protocol/read-models';

/** Sessions of one page, and those that are added with each asking. */
const PAGE = 100;
/** Of what is not listed only the server knows how much there is: it is asked again at most this often. */
const COUNT_AGAIN_MS = 5_000;

/** The sessions that are loaded. */
export interface ListedSessions extends SessionList {
  /** Something has changed that is not loaded: `counts` are from before. */
  countsAreOld?: boolean;
}

const SESSIONS = ['sessions'];

const pageAfter = (after: string, signal?: AbortSignal, limit = PAGE) =>
  fetchJson<SessionList>(`/sessions?${new URLSearchParams({ after, limit: String(limit) })}`, signal);

/** The sessions that are loaded, the most urgent ones first, kept current, and the way to the others. */
export function useSessions(initial?: SessionList) {
  const queryClient = useQueryClient();
  const query = useLiveQuery<ListedSessions>({
    key: SESSIONS,
    topic: 'fleet',
    initial,
    load: (signal) => pageAfter('0', signal),
    fold: foldSessionList,
  });
  const more = useMorePages<ListedSessions>(SESSIONS, pageAfter, addPage);
  const isOld = query.data?.countsAreOld ?? false;
  useEffect(() => {
    if (!isOld) return;
    const timer = setTimeout(async () => {
      const counts = await pageAfter('0', undefined, 1).then(
        (page) => page.counts,
        () => null,
      );
      queryClient.setQueryData<ListedSessions>(
        SESSIONS,
        (list) => list && { ...list, counts: counts ?? list.counts, countsAreOld: false },
      );
    }, COUNT_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isOld, queryClient]);
  return { ...query, more };
}

/** What was loaded is kept current by the stream: of two that know a session, the one that knows later is right. */
export function addPage(list: ListedSessions, page: SessionList): ListedSessions {
  const known = new Map(list.sessions.map((session) => [session.id, session]));
  for (const session of page.sessions) {
    const before = known.get(session.id);
    if (before && comparePositions(before.updatedPosition, session.updatedPosition) >= 0) continue;
    known.set(session.id, session);
  }
  const { next, hasMore, counts } = page;
  return { ...list, sessions: [...known.values()], next, hasMore, counts, countsAreOld: false };
}

/** One session, kept current. */
export function useSession(sessionId: string, initial?: SessionDetail) {
  return useLiveQuery<SessionDetail>({
    key: ['session', sessionId],
    topic: 'fleet',
    initial,
    load: (signal) => fetchJson(`/sessions/${encodeURIComponent(sessionId)}`, signal),
    fold: (detail, frames) => {
      const rows = sessionRows(frames).filter((row) => row.id === sessionId);
      return { session: rows.at(-1) ?? detail.session, position: lastPosition(frames) };
    },
  });
}

export function foldSessionList(list: ListedSessions, frames: RowFrame[]): ListedSessions {
  const position = lastPosition(frames);
  const rows = sessionRows(frames);
  if (rows.length === 0) return { ...list, position };
  const changed = new Map(rows.map((row) => [row.id, row]));
  const counts = { ...list.counts };
  const sessions = list.sessions.map((session) => {
    const row = changed.get(session.id);
    if (row === undefined) return session;
    changed.delete(session.id);
    if (comparePositions(row.updatedPosition, session.updatedPosition) < 0) return session;
    counts[session.state] -= 1;
    counts[row.state] += 1;
    return row;
  });
  const added = [...changed.values()];
  // One that was not loaded is new, or was counted already: where all are loaded it is new.
  const isAll = list.next === null;
  if (isAll) for (const { state } of added) counts[state] += 1;
  const countsAreOld = (list.countsAreOld ?? false) || (!isAll && added.length > 0);
  return { ...list, position, sessions: [...sessions, ...added], counts, countsAreOld };
}

function sessionRows(frames: RowFrame[]): SessionSummary[] {
  return frames.flatMap((frame) => (frame.event === 'session' ? [frame.data] : []));
}

function lastPosition(frames: RowFrame[]): string {
  return (frames.at(-1) as RowFrame).id;
}
