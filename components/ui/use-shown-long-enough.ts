'use client';

import { useCallback, useEffect, useRef } from 'react';
import { SETTLE_MS } from './stillness';

/**
 * For a key, which is pressed at nothing that could move: whether what it is about has been on screen for long enough
 * that a press is meant for it.
 *
 * @param of what the key is about; null while there is nothing
 */
export function useShownLongEnough(of: string | null): () => boolean {
  const shown = useRef<{ of: string; since: number } | null>(null);
  const current = useRef(of);
  current.current = of;

  useEffect(() => {
    if (of === null) return;
    const look = () => {
      shown.current = document.visibilityState === 'visible' ? { of, since: performance.now() } : null;
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      shown.current = null;
    };
  }, [of]);

  return useCallback(() => {
    const what = shown.current;
    return what !== null && what.of === current.current && performance.now() - what.since >= SETTLE_MS;
  }, []);
}
