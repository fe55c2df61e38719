'use client';

import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { useLiveQuery } from '@/components/live/use-live-query';
import type { SessionDetail, SessionList, SessionSummary } from '@/lib/protocol/read-models';

/** The sessions, kept current: all but old ones that are done. */
export function useSessions(initial?: SessionList) {
  return useLiveQuery<SessionList>({
    key: ['sessions'],
    topic: 'fleet',
    initial,
    load: (signal) => fetchJson('/sessions', signal),
    fold: foldSessionList,
  });
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

export function foldSessionList(list: SessionList, frames: RowFrame[]): SessionList {
  const position = lastPosition(frames);
  const rows = sessionRows(frames);
  if (rows.length === 0) return { ...list, position };
  const changed = new Map(rows.map((row) => [row.id, row]));
  const sessions = list.sessions.map((session) => {
    const row = changed.get(session.id);
    changed.delete(session.id);
    return row ?? session;
  });
  return { ...list, position, sessions: [...sessions, ...changed.values()] };
}

function sessionRows(frames: RowFrame[]): SessionSummary[] {
  return frames.flatMap((frame) => (frame.event === 'session' ? [frame.data] : []));
}

function lastPosition(frames: RowFrame[]): string {
  return (frames.at(-1) as RowFrame).id;
}
