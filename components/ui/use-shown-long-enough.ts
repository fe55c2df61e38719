'use client';

import { useCallback, useLayoutEffect, useRef } from 'react';
import { SETTLE_MS } from './stillness';

/**
 * For a key, which is pressed at nothing that could move: whether what it is about has been on screen for long enough
 * that a press is meant for it.
 *
 * @param of what the key is about; null while there is nothing
 */
export function useShownLongEnough(of: string | null): () => boolean {
  const shownSince = useRef<number | null>(null);

  // A layout effect: no key can come between what the page shows and what is known of it.
  useLayoutEffect(() => {
    if (of === null) return;
    const look = () => {
      shownSince.current = document.visibilityState === 'visible' ? performance.now() : null;
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      shownSince.current = null;
    };
  }, [of]);

  return useCallback(() => shownSince.current !== null && performance.now() - shownSince.current >= SETTLE_MS, []);
}
