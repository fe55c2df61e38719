'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { useRef } from 'react';
import type { OutgoingMessage } from './draft-store';

const MAX_TEXTS = 100;

/** Distinct texts sent to the agent, newest first, for the ↑ key. */
export function sentTexts(turns: readonly Turn[], outgoing: readonly OutgoingMessage[]): string[] {
  const texts = new Set<string>();
  for (const { text } of outgoing.toReversed()) texts.add(text);
  for (let index = turns.length - 1; index >= 0 && texts.size < MAX_TEXTS; index--) {
    for (const item of turns[index]?.items.toReversed() ?? []) {
      if (item.kind === 'message' && item.role === 'user') texts.add(item.text);
    }
  }
  return [...texts];
}

/** Steps through sent texts: ↑ in an empty composer starts, then both arrows move. */
export function useSentHistory(texts: () => string[]) {
  const walk = useRef<{ texts: string[]; at: number } | null>(null);
  return {
    /** @returns the text to show; null if the key has another meaning here */
    move(key: string, text: string): string | null {
      const step = key === 'ArrowUp' ? 1 : key === 'ArrowDown' ? -1 : 0;
      const current = walk.current?.texts[walk.current.at] === text ? walk.current : null;
      if (step === 0 || (current === null && (step < 0 || text !== ''))) return null;
      const { texts: all, at } = current ?? { texts: texts(), at: -1 };
      const next = Math.min(all.length - 1, at + step);
      if (next < 0) {
        walk.current = null;
        return current === null ? null : '';
      }
      walk.current = { texts: all, at: next };
      return all[next] ?? null;
    },
  };
}
