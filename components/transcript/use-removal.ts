import type { Position } from '@interlude/protocol/position';
import type { Turn } from '@interlude/protocol/read-models';
import { useEffect, useLayoutEffect, useRef } from 'react';
import type { RowVirtualizer } from '@/components/ui/row-window';

/**
 * When a session's oldest turns are removed, a reader of what is left stays where they are: the list sees to that, as it
 * does for turns that are put before others. Who reads one that goes is taken to the oldest that is left, and keeps the
 * keyboard.
 */
export function useRemoval(options: {
  virtualizer: RowVirtualizer;
  turns: readonly Turn[];
  removedUpTo: Position | undefined;
}): void {
  const { virtualizer, turns, removedUpTo } = options;
  const read = useRef<{ turnId: string | undefined; removedUpTo: Position | undefined }>(undefined);
  const focused = useRef<EventTarget | null>(null);
  useEffect(() => {
    const box = virtualizer.scrollElement;
    const note = ({ target }: FocusEvent) => {
      focused.current = target;
    };
    box?.addEventListener('focusin', note);
    return () => box?.removeEventListener('focusin', note);
  }, [virtualizer]);
  // after each render, because only the one before knows which turn was read
  useLayoutEffect(() => {
    const before = read.current;
    read.current = { turnId: turns[virtualizer.range?.startIndex ?? 0]?.id, removedUpTo };
    if (before === undefined || before.removedUpTo === removedUpTo) return;
    if (!turns.some(({ id }) => id === before.turnId)) virtualizer.scrollToOffset(0);
    const isLost = focused.current instanceof Element && !focused.current.isConnected;
    if (isLost && document.activeElement === document.body) virtualizer.scrollElement?.focus({ preventScroll: true });
  });
}
