'use client';

import type { LogLine, TurnAt } from '@interlude/protocol/read-models';
import { useCallback, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';

/** The turn that was running when a log line was written. */
export interface TurnAtLine {
  at: number;
  /** Null while loading and after a failure. */
  answer: TurnAt | null;
  /** Why loading failed and what to do next. */
  error: string | null;
}

/**
 * Looks up the turn that was running when a log line was written, and shows it.
 *
 * Ordering: only the latest line's answer counts.
 */
export function useTurnAtLine(sessionId: string, show: (turnId: string) => void) {
  const [ran, setRan] = useState<TurnAtLine | null>(null);
  const asking = useRef<AbortController | null>(null);

  const ask = useCallback(
    async ({ occurredAt: at }: LogLine) => {
      asking.current?.abort();
      const own = new AbortController();
      asking.current = own;
      try {
        const path = `/sessions/${encodeURIComponent(sessionId)}/turn-at?at=${at}`;
        const answer = await fetchJson<TurnAt>(path, own.signal);
        if (own.signal.aborted) return;
        setRan({ at, answer, error: null });
        if (answer.turnId !== null) show(answer.turnId);
      } catch (error) {
        if (own.signal.aborted) return;
        const said = error instanceof TypeError ? 'The server can’t be reached. Try again.' : (error as Error).message;
        setRan({ at, answer: null, error: said });
      }
    },
    [sessionId, show],
  );
  const forget = useCallback(() => {
    asking.current?.abort();
    setRan(null);
  }, []);
  return { ran, ask, forget };
}
