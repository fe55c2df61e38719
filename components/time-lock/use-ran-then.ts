'use client';

import type { LogLine, TurnAt } from '@interlude/protocol/read-models';
import { useCallback, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';

/** What ran when a line of the log was written. */
export interface RanThen {
  at: number;
  /** Null while it is asked for, and where no answer came. */
  answer: TurnAt | null;
  /** Why no answer came, and what to do next. */
  error: string | null;
}

/**
 * Asks what ran when a line was written, and has it shown.
 *
 * Ordering: of several lines asked about, only the last one's answer counts.
 */
export function useRanThen(sessionId: string, show: (turnId: string) => void) {
  const [ran, setRan] = useState<RanThen | null>(null);
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
