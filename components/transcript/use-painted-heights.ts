import { type RefObject, useCallback, useLayoutEffect, useRef } from 'react';
import { useHydrated } from '@/components/ui/now';
import type { Turn } from '@/lib/protocol/read-models';
import { estimateTurnHeight } from './turn-height';

/**
 * How high a turn is before it has been laid out here, in pixels: as high as the server's markup had it, so that it does
 * not move when the browser takes over; others as they are guessed.
 */
export function usePaintedHeights(scroller: RefObject<HTMLElement | null>): (turn: Turn) => number {
  const painted = useRef<ReadonlyMap<string | undefined, number>>(new Map());
  const hydrated = useHydrated();
  useLayoutEffect(() => {
    if (hydrated) return;
    const turns = Array.from(scroller.current?.querySelectorAll<HTMLElement>('[data-turn]') ?? []);
    painted.current = new Map(turns.map((turn) => [turn.dataset.turn, turn.getBoundingClientRect().height]));
  }, [scroller, hydrated]);
  return useCallback((turn) => painted.current.get(turn.id) ?? estimateTurnHeight(turn), []);
}
