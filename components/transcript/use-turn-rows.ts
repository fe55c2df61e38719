import type { Turn } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useState } from 'react';
import { type RowVirtualizer, useProgressiveRows, useRowWindow } from '@/components/ui/row-window';
import { pauseHeight } from './day-line';
import { turnWeight } from './first-paint';
import { type Painted, TAIL_PX } from './painted';
import { estimateTurnHeight } from './turn-height';

/** Room for what stands above the oldest turn, and below the newest. */
const TOP_PX = 48;
const END_PX = 24;

/** The turns that are laid out: what is in sight, and what is near it as it comes. */
export function useTurnRows(options: {
  turns: readonly Turn[];
  scroller: RefObject<HTMLDivElement | null>;
  /** What the server rendered of it. */
  painted: Painted | null;
  /** Whether the reader stays where they are, however near to the end. */
  held: boolean;
  follows: boolean;
}): { virtualizer: RowVirtualizer; rows: readonly VirtualItem[] } {
  const { turns, scroller, painted, held, follows } = options;
  // The same while one only grows, so that it does not have ten thousand rows measured again.
  const [laidOut, setLaidOut] = useState(turns);
  const measured = areSameTurns(laidOut, turns) ? laidOut : turns;
  if (measured !== laidOut) setLaidOut(measured);
  // A turn that has not been laid out here is as high as it was in the server's markup; others as they are guessed.
  const heightOf = useCallback((turn: Turn) => painted?.heights.get(turn.id) ?? estimateTurnHeight(turn), [painted]);
  const virtualizer = useRowWindow({
    scroller,
    follows,
    version: turns,
    count: turns.length,
    getItemKey: useCallback((index: number) => measured[index]?.id ?? index, [measured]),
    estimateSize: useCallback((index: number) => rowHeight(measured, index, heightOf), [measured, heightOf]),
    overscan: 4,
    paddingStart: TOP_PX,
    paddingEnd: END_PX,
    followOnAppend: true,
    scrollEndThreshold: held ? -1 : TAIL_PX,
    directDomUpdates: true,
    initialOffset: () => {
      const height = turns.reduce((sum, _, index) => sum + rowHeight(turns, index, heightOf), TOP_PX + END_PX);
      return Math.max(0, height - (painted?.fromEnd ?? 0));
    },
  });
  const near = virtualizer.getVirtualItems();
  const { range } = virtualizer;
  const waiting = useProgressiveRows(near, {
    keyOf: ({ key }) => key,
    weightOf: ({ index }) => turnWeight(turns[index] as Turn),
    // With the page's own first layout comes only what is in sight.
    firstWeight: 0,
    isInSight: ({ index }) => range !== null && index >= range.startIndex && index <= range.endIndex,
  });
  return { virtualizer, rows: waiting.size === 0 ? near : near.filter((row) => !waiting.has(row)) };
}

function areSameTurns(before: readonly Turn[], now: readonly Turn[]): boolean {
  return before === now || (before.length === now.length && before.every(({ id }, at) => id === now[at]?.id));
}

/** A turn's, as far as it is known, with the room before it. */
function rowHeight(turns: readonly Turn[], index: number, heightOf: (turn: Turn) => number): number {
  const turn = turns[index] as Turn;
  return heightOf(turn) + pauseHeight(turn, turns[index - 1]);
}
