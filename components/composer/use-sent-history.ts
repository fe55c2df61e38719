'use client';

import { useRef } from 'react';

/** Walking through what was sent before, by ↑ in an empty composer and the arrows from there on. */
export function useSentHistory(texts: () => string[]) {
  const walk = useRef<{ texts: string[]; at: number } | null>(null);
  return {
    /** @returns the text to show, or null when the key means something else here */
    move(key: string, text: string): string | null {
      const step = key === 'ArrowUp' ? 1 : key === 'ArrowDown' ? -1 : 0;
      const walking = walk.current !== null && walk.current.texts[walk.current.at] === text;
      if (step === 0 || (!walking && (step < 0 || text !== ''))) return null;
      const { texts: all, at } = walking && walk.current !== null ? walk.current : { texts: texts(), at: -1 };
      const next = Math.min(all.length - 1, at + step);
      if (next < 0) {
        walk.current = null;
        return walking ? '' : null;
      }
      walk.current = { texts: all, at: next };
      return all[next] ?? null;
    },
  };
}
