'use client';

import { comparePositions, type Position } from '@interlude/protocol/position';
import type { Turn } from '@interlude/protocol/read-models';
import { type RefObject, useCallback, useEffect, useState } from 'react';
import { useNewest } from '@/components/ui/use-newest';
import { distanceFromEnd, TAIL_PX } from './painted';

/**
 * Whether the reader follows the end of the transcript. Once they scroll up or unfold something they don't, nothing
 * moves under their eyes, and what comes meanwhile is counted.
 *
 * @param hasLeft whether they had scrolled up before it came to life
 */
export function useTail(scroller: RefObject<HTMLElement | null>, position: Position, hasLeft: boolean) {
  const [leftAt, setLeftAt] = useState<Position | null>(hasLeft ? position : null);
  const [held, setHeld] = useState(false);
  const newest = useNewest(position);

  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const look = () => {
      const atEnd = distanceFromEnd(box) <= TAIL_PX;
      if (atEnd) setHeld(false);
      setLeftAt((before) => (atEnd ? null : (before ?? newest.current)));
    };
    box.addEventListener('scroll', look, { passive: true });
    return () => box.removeEventListener('scroll', look);
  }, [scroller, newest]);

  const hold = useCallback(() => {
    setHeld(true);
    // What is unfolded has its height two frames on. Still at the end then: there was nothing to hold.
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
 * How many things were said and done after `position`; a message that has been growing since counts as one. Turns are
 * in order, so only the newest are looked at.
 */
export function countItemsAfter(turns: readonly Turn[], position: Position, now: Position): number {
  const last = turns.at(-1)?.items.at(-1);
  const grows = last !== undefined && 'streaming' in last && last.streaming;
  const grown = grows && comparePositions(last.position, position) <= 0 && comparePositions(now, position) > 0;
  let count = grown ? 1 : 0;
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at] as Turn;
    for (const item of turn.items) if (comparePositions(item.position, position) > 0) count += 1;
    if (comparePositions(turn.position, position) <= 0) break;
  }
  return count;
}
