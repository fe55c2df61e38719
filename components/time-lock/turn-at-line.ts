'use client';

import type { LogLine, TurnAt } from '@interlude/protocol/read-models';
import { useCallback, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';

/** The turn that was running when a log line was written. */
export interface TurnAtLine {
  at: number;
  /** Null while loading and after a failure. */
  response: TurnAt | null;
  /** The reason loading failed, with advice. */
  error: string | null;
}

/**
 * Looks up the turn that was running when a log line was written, and shows it.
 *
 * Ordering: only the latest line's response counts.
 */
export function useTurnAtLine(sessionId: string, show: (turnId: string) => void) {
  const [turnAtLine, setTurnAtLine] = useState<TurnAtLine | null>(null);
  const controller = useRef<AbortController | null>(null);

  const lookUp = useCallback(
    async ({ occurredAt: at }: LogLine) => {
      controller.current?.abort();
      const current = new AbortController();
      controller.current = current;
      try {
        const path = `/sessions/${encodeURIComponent(sessionId)}/turn-at?at=${at}`;
        const response = await fetchJson<TurnAt>(path, current.signal);
        if (current.signal.aborted) return;
        setTurnAtLine({ at, response, error: null });
        if (response.turnId !== null) show(response.turnId);
      } catch (error) {
        if (current.signal.aborted) return;
        const reason =
          error instanceof TypeError ? 'The server can’t be reached. Try again.' : (error as Error).message;
        setTurnAtLine({ at, response: null, error: reason });
      }
    },
    [sessionId, show],
  );
  const clear = useCallback(() => {
    controller.current?.abort();
    setTurnAtLine(null);
  }, []);
  return { turnAtLine, lookUp, clear };
}
