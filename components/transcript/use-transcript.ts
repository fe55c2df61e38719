'use client';

import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { useLiveQuery } from '@/components/live/use-live-query';
import { foldTranscript, prependTurns, type TranscriptState, transcriptFromPage } from '@/lib/projections/transcript';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import { FIRST_PAGE } from './first-page';

/** What became of looking for something in a session: why it could not be looked for is an error. */
export type Sought = 'there' | 'missing' | Error;

const OLDER_PAGE = 60;
/** Looking for a turn far back, few large pages beat many small ones. */
const SEEK_PAGE = 200;

function pathOf(sessionId: string, query: Record<string, string | number>): string {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return `/sessions/${encodeURIComponent(sessionId)}/transcript?${search}`;
}

/** A session's transcript, kept current, and the way to what is older. */
export function useTranscript(sessionId: string, initial?: TranscriptPage) {
  const queryClient = useQueryClient();
  const [firstState] = useState(() => (initial ? transcriptFromPage(initial) : undefined));
  const key = ['transcript', sessionId];
  const query = useLiveQuery<TranscriptState>({
    key,
    topic: `session:${sessionId}`,
    initial: firstState,
    load: async (signal) =>
      transcriptFromPage(await fetchJson<TranscriptPage>(pathOf(sessionId, { limit: FIRST_PAGE }), signal)),
    fold: (state, frames) =>
      foldTranscript(
        state,
        frames.flatMap((frame) =>
          frame.event === 'session-event'
            ? [
                {
                  position: frame.id,
                  occurredAt: frame.data.occurredAt,
                  receivedAt: frame.data.receivedAt,
                  event: frame.data.event,
                },
              ]
            : [],
        ),
      ),
  });

  const [loadingOlder, setLoadingOlder] = useState(false);
  const [olderError, setOlderError] = useState<Error | null>(null);
  const failure = useRef<Error | null>(null);
  const busy = useRef<Promise<boolean> | null>(null);
  const loadOlder = useCallback(
    (limit: number = OLDER_PAGE): Promise<boolean> => {
      const read = async () => {
        failure.current = null;
        const state = queryClient.getQueryData<TranscriptState>(['transcript', sessionId]);
        const oldest = state?.turns[0];
        if (!state?.hasMore || !oldest) return false;
        setLoadingOlder(true);
        setOlderError(null);
        try {
          const page = await fetchJson<TranscriptPage>(pathOf(sessionId, { before: oldest.position, limit }));
          queryClient.setQueryData<TranscriptState>(['transcript', sessionId], (now) => now && prependTurns(now, page));
          return true;
        } catch (error) {
          failure.current = error as Error;
          setOlderError(failure.current);
          return false;
        } finally {
          setLoadingOlder(false);
        }
      };
      busy.current ??= read().finally(() => {
        busy.current = null;
      });
      return busy.current;
    },
    [queryClient, sessionId],
  );

  /** Loads back until the turn is there. */
  const seek = useCallback(
    async (isThere: (state: TranscriptState) => boolean): Promise<Sought> => {
      for (;;) {
        const state = queryClient.getQueryData<TranscriptState>(['transcript', sessionId]);
        if (state && isThere(state)) return 'there';
        if (!state?.hasMore) return 'missing';
        if (!(await loadOlder(SEEK_PAGE))) return failure.current ?? 'missing';
      }
    },
    [queryClient, sessionId, loadOlder],
  );

  // An event moved something out of a turn that is not loaded; only the server can tell what it was.
  const incomplete = query.data?.incomplete ?? false;
  const { refetch } = query;
  useEffect(() => {
    if (incomplete) refetch();
  }, [incomplete, refetch]);

  return { ...query, loadOlder, loadingOlder, olderError, seek };
}
