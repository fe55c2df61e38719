'use client';

import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { useLiveQuery } from '@/components/live/use-live-query';
import {
  awaitOlder,
  foldTranscript,
  giveUpOlder,
  prependTurns,
  type TranscriptState,
  transcriptFromPage,
} from '@/lib/projections/transcript';
import { comparePositions } from '@/lib/protocol/position';
import type { TranscriptPage, Turn } from '@/lib/protocol/read-models';
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

/** The newest page, and older ones as far back as turns are loaded already: who reads there stays there. */
async function loadBackTo(sessionId: string, loaded: Turn | undefined, signal: AbortSignal): Promise<TranscriptState> {
  const read = (query: Record<string, string | number>) => fetchJson<TranscriptPage>(pathOf(sessionId, query), signal);
  let state = transcriptFromPage(await read({ limit: FIRST_PAGE }));
  for (let [oldest] = state.turns; loaded && oldest && state.hasMore; [oldest] = state.turns) {
    if (comparePositions(oldest.position, loaded.position) <= 0) break;
    state = prependTurns(awaitOlder(state), await read({ before: oldest.position, limit: SEEK_PAGE }));
  }
  return state;
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
    load: (signal) => loadBackTo(sessionId, queryClient.getQueryData<TranscriptState>(key)?.turns[0], signal),
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
        const update = (change: (state: TranscriptState) => TranscriptState) =>
          queryClient.setQueryData<TranscriptState>(['transcript', sessionId], (now) => now && change(now));
        const state = queryClient.getQueryData<TranscriptState>(['transcript', sessionId]);
        const oldest = state?.turns[0];
        if (!state?.hasMore || !oldest) return false;
        update(awaitOlder);
        setLoadingOlder(true);
        setOlderError(null);
        try {
          const page = await fetchJson<TranscriptPage>(pathOf(sessionId, { before: oldest.position, limit }));
          update((now) => prependTurns(now, page));
          return true;
        } catch (error) {
          update(giveUpOlder);
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
