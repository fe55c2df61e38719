'use client';

import { comparePositions, type Position } from '@interlude/protocol/position';
import type { Turn } from '@interlude/protocol/read-models';
import { type RefObject, useCallback, useEffect, useState } from 'react';
import { useLatest } from '@/components/ui/use-latest';
import { distanceFromEnd, TAIL_PX } from './server-markup';

/**
 * True while the reader follows the end of the transcript. They leave it by scrolling up or unfolding something; from
 * then on nothing moves, and new items are counted.
 *
 * @param hasLeft true if the reader had scrolled up before hydration
 */
export function useTail(scroller: RefObject<HTMLElement | null>, position: Position, hasLeft: boolean) {
  const [leftAt, setLeftAt] = useState<Position | null>(hasLeft ? position : null);
  const [held, setHeld] = useState(false);
  const newest = useLatest(position);

  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const update = () => {
      const atEnd = distanceFromEnd(box) <= TAIL_PX;
      if (atEnd) setHeld(false);
      setLeftAt((before) => (atEnd ? null : (before ?? newest.current)));
    };
    box.addEventListener('scroll', update, { passive: true });
    return () => box.removeEventListener('scroll', update);
  }, [scroller, newest]);

  const hold = useCallback(() => {
    setHeld(true);
    // Unfolded content has its height after two frames. If the end is still in view, the reader keeps following.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const box = scroller.current;
        if (!box) return;
        const hasLeft = distanceFromEnd(box) > TAIL_PX;
        setHeld(hasLeft);
        setLeftAt((before) => (hasLeft ? (before ?? newest.current) : null));
      }),
    );
  }, [scroller, newest]);

  return { leftAt, held, hold };
}

/**
 * Number of items after `position`. A message that grew since counts as one. Turns are in order, so only the newest are
 * examined.
 */
export function countItemsAfter(turns: readonly Turn[], position: Position, now: Position): number {
  const last = turns.at(-1)?.items.at(-1);
  const grows = last !== undefined && 'streaming' in last && last.streaming;
  const grown = grows && comparePositions(last.position, position) <= 0 && comparePositions(now, position) > 0;
  let count = grown ? 1 : 0;
  for (let index = turns.length - 1; index >= 0; index--) {
    const turn = turns[index] as Turn;
    for (const item of turn.items) if (comparePositions(item.position, position) > 0) count += 1;
    if (comparePositions(turn.position, position) <= 0) break;
  }
  return count;
}
