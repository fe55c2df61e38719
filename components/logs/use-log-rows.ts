'use client';

import type { Position } from '@interlude/protocol/position';
import type { VirtualItem, Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffectEvent, useLayoutEffect, useState } from 'react';
import { useRowWindow } from '@/components/ui/row-window';
import type { LogStore } from './log-store';
import type { LogWindow } from './log-window';

/* oxlint-disable react-compiler/exhaustive-deps -- a window stays the same object when other rows come: its version tells */

/** What a line that wraps is taken for until it is laid out: of long lines, fewer come at once. */
const WRAPPED = { columns: 200, mostLines: 5 };
/** Rows beyond the edge of what is seen, on either side. */
const OVERSCAN = 12;
/** So many heights other than a line's are remembered. */
const MOST_HEIGHTS = 20_000;

type LogVirtualizer = Virtualizer<HTMLDivElement, HTMLDivElement>;
type Align = 'center' | 'start' | 'auto';

export interface LogRows {
  /** The rows that are laid out, one below the other. */
  items: VirtualItem[];
  /** Number of the row of an item with index 0. */
  begin: number;
  /** Of all rows together. */
  heightPx: number;
  measure: (element: HTMLDivElement | null) => void;
  /** Where a row begins, in pixels from the top of all. */
  startOf(row: number): number;
  scrollToRow(row: number, align: Align): void;
  scrollToOffset(px: number): void;
  scrollToEnd(): void;
}

/**
 * The rows near the reader. A line takes 20 px unless it is found to take more; while the reader follows, the end is
 * kept in sight, and while not, what they read keeps its place whatever comes or goes around it.
 *
 * The virtualizer goes through all its rows whenever one is added, which of a million takes longer than a frame: it is
 * given a stretch of some hundred around the reader.
 */
export function useLogRows(options: {
  store: LogStore;
  version: number;
  /** How high lines are that the server's markup had. */
  painted: ReadonlyMap<Position, number>;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
  wraps: boolean;
}): LogRows {
  const { store, version, painted, scroller, follows, wraps } = options;
  const { window } = store;
  const [laid, setLaid] = useState(() => stretchAround(window, follows ? window.rowCount - 1 : rowOf(store)));
  const [wanted, setWanted] = useState<{ row: number; align: Align } | null>(null);
  const stretch = stretchNow(window, laid, follows);
  const { begin, end, farPx } = stretch;

  const virtualizer = useRowWindow({
    scroller,
    follows,
    version,
    count: end - begin,
    // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
    getItemKey: useCallback((index: number) => window.keyAt(begin + index), [window, begin, version]),
    // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
    estimateSize: useCallback(
      (index: number) => {
        const line = window.lineAt(begin + index);
        const known = line === null ? LINE_PX : painted.get(line.position);
        if (line === null || known !== undefined || !wraps) return known ?? LINE_PX;
        const lines = Math.floor(line.message.length / WRAPPED.columns);
        return LINE_PX * Math.min(Math.max(lines, 1), WRAPPED.mostLines);
      },
      [window, begin, wraps, painted, version],
    ),
    measureElement: heightOf,
    onChange(instance) {
      const row = rowAtPx(instance.scrollOffset ?? 0, instance, stretch, window);
      if (!isWithin(window, stretch, row)) setLaid(stretchAround(window, row));
    },
    overscan: OVERSCAN,
    paddingStart: TOP_PX + begin * farPx,
    paddingEnd: BOTTOM_PX + (window.rowCount - end) * farPx,
    // going to the first line brings what stands above it into view too
    scrollPaddingStart: TOP_PX,
    // Near where the reading begins, and never further down than the box can be scrolled.
    initialOffset: () => Math.max(0, farPx * (follows ? window.rowCount : rowOf(store)) - innerHeight),
  });

  useLayoutEffect(() => {
    if (store.place.kind === 'newest') virtualizer.scrollToEnd();
  }, [store, virtualizer]);

  // While the end is followed the stretch goes along, and when it no longer is, that is where the reader is.
  const keepUp = useEffectEvent(() => {
    if (stretch.mark.number !== laid.mark.number) setLaid(stretch);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(() => {
    if (follows) keepUp();
    if (virtualizer.itemSizeCache.size > MOST_HEIGHTS) forgetHeights(virtualizer);
  }, [version, follows, virtualizer]);

  // By now the stretch is around it.
  const goThere = useEffectEvent(({ row, align }: { row: number; align: Align }) =>
    virtualizer.scrollToIndex(row - begin, { align }),
  );
  useLayoutEffect(() => {
    if (wanted !== null) goThere(wanted);
  }, [wanted]);

  return {
    items: virtualizer.getVirtualItems(),
    begin,
    heightPx: virtualizer.getTotalSize(),
    measure: virtualizer.measureElement,
    startOf(row) {
      const { measurementsCache, options } = virtualizer;
      const inside = measurementsCache[Math.min(Math.max(row - begin, 0), measurementsCache.length - 1)];
      if (inside === undefined) return options.paddingStart;
      return inside.start + (row - begin - inside.index) * LINE_PX;
    },
    scrollToRow(row, align) {
      if (!isWithin(window, stretch, row)) setLaid(stretchAround(window, row));
      setWanted({ row, align });
    },
    scrollToOffset: (px) => virtualizer.scrollToOffset(px),
    scrollToEnd: () => virtualizer.scrollToEnd(),
  };
}

/** @returns the row at which the reading begins, or -1 */
export function rowOf({ window, place }: LogStore): number {
  if (place.kind === 'newest') return window.rowCount - 1;
  if (place.kind === 'line') return window.indexFrom(place.position);
  return window.indexWhere(({ occurredAt }) => occurredAt >= place.at);
}

function rowAtPx(px: number, virtualizer: LogVirtualizer, { begin, end }: LogStretch, window: LogStore['window']) {
  const { measurementsCache, options } = virtualizer;
  const bottom = measurementsCache[end - begin - 1]?.end ?? options.paddingStart;
  if (px < options.paddingStart || px > bottom) return farRowAt(window, px);
  return begin + (virtualizer.getVirtualItemForOffset(px)?.index ?? 0);
}

/** By what the browser tells of its own accord: asking for a row's height in the midst of others makes it lay out all. */
function heightOf(
  element: HTMLDivElement,
  entry: ResizeObserverEntry | undefined,
  virtualizer: LogVirtualizer,
): number {
  const px = entry?.borderBoxSize[0]?.blockSize;
  if (px !== undefined) return Math.round(px);
  const index = virtualizer.indexFromElement(element);
  const key = virtualizer.options.getItemKey(index);
  return virtualizer.itemSizeCache.get(key) ?? virtualizer.options.estimateSize(index);
}

/** Those measured first. What is laid out is measured again when it comes back. */
function forgetHeights({ itemSizeCache, getVirtualItems }: LogVirtualizer): void {
  const seen = new Set(getVirtualItems().map(({ key }) => key));
  let surplus = itemSizeCache.size - MOST_HEIGHTS / 2;
  for (const key of itemSizeCache.keys()) {
    if (surplus <= 0) return;
    surplus -= 1;
    if (!seen.has(key)) itemSizeCache.delete(key);
  }
}

export const LINE_PX = 20;
export const TOP_PX = 32;
export const BOTTOM_PX = 8;
/** Browsers lay out no box of more than some 17 million pixels: in a longer log, rows far from the reader count as less. */
const MOST_PX = 12_000_000;
/** Rows on either side of the reader, when the stretch is laid anew. */
const REACH = 400;
/** Nearer to its end than this it is laid anew. More than the highest screens show. */
const MARGIN = 150;

/** Rows from `begin` up to `end`, that are laid out by their real heights; all others count as `farPx` high. */
interface LogStretch {
  begin: number;
  end: number;
  farPx: number;
  /** The number of a line by which the stretch is found again, and how far down it is. */
  mark: { number: number; below: number };
}

/** The stretch around a row: as long wherever that is, so that all rows together are as high. */
export function stretchAround(window: LogWindow, row: number): LogStretch {
  const begin = Math.max(0, Math.min(row - REACH, window.rowCount - 2 * REACH));
  return stretchFrom(window, begin);
}

/** The same stretch where its rows are now; while the reader follows the end, with that in it. */
export function stretchNow(window: LogWindow, { mark }: LogStretch, follows: boolean): LogStretch {
  const begin = Math.max(0, window.indexOfNumber(mark.number) - mark.below);
  if (follows && begin + 2 * REACH < window.rowCount) return stretchFrom(window, window.rowCount - REACH);
  return stretchFrom(window, begin);
}

/** Whether the rows that the reader may come to next are in it. */
export function isWithin(window: LogWindow, { begin, end }: LogStretch, row: number): boolean {
  return (begin === 0 || row - begin >= MARGIN) && (end === window.rowCount || end - row >= MARGIN);
}

/** @returns the row that stands at `px` from the top once the stretch is laid out around it */
export function farRowAt(window: LogWindow, px: number): number {
  const { rowCount } = window;
  const farPx = farPxOf(rowCount);
  const near = REACH * LINE_PX;
  const down = px - TOP_PX;
  if (rowCount <= 2 * REACH || down <= near) return Math.max(0, Math.min(Math.floor(down / LINE_PX), rowCount - 1));
  const row = Math.floor(REACH + (down - near) / farPx);
  if (row <= rowCount - REACH) return row;
  return Math.min(rowCount - 1, Math.floor(rowCount - 2 * REACH + (down - (rowCount - 2 * REACH) * farPx) / LINE_PX));
}

function stretchFrom(window: LogWindow, begin: number): LogStretch {
  const end = Math.min(window.rowCount, begin + 2 * REACH);
  const farPx = farPxOf(window.rowCount);
  for (let below = 0; begin + below < end; below++) {
    const line = window.lineAt(begin + below);
    if (line !== null) return { begin, end, farPx, mark: { number: line.line, below } };
  }
  return { begin, end, farPx, mark: { number: window.numberAt(begin), below: 0 } };
}

function farPxOf(rowCount: number): number {
  return Math.min(LINE_PX, MOST_PX / rowCount);
}
