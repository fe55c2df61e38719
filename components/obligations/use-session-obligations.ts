'use client';

import type { SessionObligations, SessionSummary } from '@interlude/protocol/read-models';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';

/** What is owed in a session and what was settled last, by the server, read again as the session changes. */
export function useSessionObligations({ id, updatedPosition }: Pick<SessionSummary, 'id' | 'updatedPosition'>) {
  return useQuery({
    queryKey: ['obligations', id, updatedPosition],
    queryFn: ({ signal }) => fetchJson<SessionObligations>(`/sessions/${encodeURIComponent(id)}/obligations`, signal),
    placeholderData: keepPreviousData,
  });
}
