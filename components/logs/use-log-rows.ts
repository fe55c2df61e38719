'use client';

import { useVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useLayoutEffect } from 'react';
import type { LogStore } from './log-store';

export const LINE_PX = 20;
const GAP_PX = 28;
export const TOP_PX = 32;
const BOTTOM_PX = 8;
/** Heights of rows that were let go of are forgotten when there are this many. */
const MOST_HEIGHTS = 60_000;

/**
 * The rows near the reader. A line takes 20 px unless it is found to take more; while the reader follows, the end is
 * kept in sight, and while not, what they read keeps its place whatever comes or goes around it.
 */
export function useLogRows(
  store: LogStore,
  version: number,
  scroller: RefObject<HTMLDivElement | null>,
  follows: boolean,
) {
  const { buffer } = store;
  const virtualizer = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    count: buffer.rowCount,
    getScrollElement: () => scroller.current,
    getItemKey: useCallback((index: number) => buffer.keyAt(index), [buffer]),
    estimateSize: useCallback((index: number) => (buffer.lineAt(index) === null ? GAP_PX : LINE_PX), [buffer]),
    overscan: 12,
    paddingStart: TOP_PX,
    paddingEnd: BOTTOM_PX,
    // going to the first line brings what stands above it into view too
    scrollPaddingStart: TOP_PX,
    anchorTo: 'end',
    directDomUpdates: true,
    useFlushSync: false,
    // Near where the reading begins, and never further down than the box can be scrolled.
    initialOffset: () => Math.max(0, LINE_PX * (follows ? buffer.rowCount : rowOf(store)) - innerHeight),
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(() => {
    if (follows) virtualizer.scrollToEnd();
    if (virtualizer.itemSizeCache.size > MOST_HEIGHTS) forgetHeights(virtualizer.itemSizeCache, store);
  }, [version, follows, virtualizer]);
  return virtualizer;
}

/** @returns the row at which the reading begins, or -1 */
export function rowOf({ buffer, place }: LogStore): number {
  if (place.kind === 'newest') return buffer.rowCount - 1;
  if (place.kind === 'line') return buffer.indexFrom(place.position);
  return buffer.indexWhere(({ occurredAt }) => occurredAt >= place.at);
}

function forgetHeights(heights: Map<unknown, number>, { buffer }: LogStore): void {
  const held = new Set<unknown>();
  for (const { position } of buffer.lines()) held.add(position);
  for (const key of heights.keys()) if (!held.has(key)) heights.delete(key);
}
