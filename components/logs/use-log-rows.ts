'use client';

import { useVirtualizer, type VirtualItem, type Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useLayoutEffect, useReducer, useRef, useState } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { LogStore } from './log-store';
import { type LogStretch, nextStretch } from './log-stretch';

export const LINE_PX = 20;
const GAP_PX = 28;
export const TOP_PX = 32;
export const BOTTOM_PX = 8;
/** What a line that wraps is taken for until it is laid out: of long lines, fewer come at once. */
const WRAPPED = { columns: 200, mostLines: 5 };
/** Rows beyond the edge of what is seen, on either side. */
const OVERSCAN = 12;
/** So many heights other than a line's are remembered. */
const MOST_HEIGHTS = 20_000;

type LogVirtualizer = Virtualizer<HTMLDivElement, HTMLDivElement>;

/** Where each row stands, and the way to it. A row's number is its place in the buffer; this stays the same object. */
export interface LogPlaces {
  /** Where the row begins, in pixels from the top of all; rows far from the reader count as one line high. */
  startOf(row: number): number;
  /** @returns the row at `px` from the top of all */
  rowNear(px: number): number;
  /** Where the reader is, in pixels from the top of all. */
  offset(): number;
  /** Height of what they see. */
  seenPx(): number;
  scrollToRow(row: number, align: Align): void;
  scrollToOffset(px: number): void;
  scrollToEnd(): void;
}

export interface LogRows {
  /** The rows that are laid out, one below the other. */
  items: VirtualItem[];
  /** Number of the row of an item with index 0. */
  begin: number;
  /** Of all rows together. */
  heightPx: number;
  measure: (element: HTMLDivElement | null) => void;
  places: LogPlaces;
}

type Align = 'center' | 'start' | 'auto';

/**
 * The rows near the reader. A line takes 20 px unless it is found to take more; while the reader follows, the end is
 * kept in sight, and while not, what they read keeps its place whatever comes or goes around it.
 *
 * The virtualizer goes through all its rows whenever one is added, which of a million takes longer than a frame: it is
 * given a stretch of some hundred around the reader, and what is outside of it counts as lines of the usual height.
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
  const { buffer } = store;
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const own = useRef<{ stretch: LogStretch; virtualizer: LogVirtualizer } | null>(null);
  const wanted = useRef<{ row: number; align: Align } | null>(null);

  const reader =
    wanted.current?.row ??
    (follows ? buffer.rowCount - 1 : own.current === null ? rowOf(store) : readerOf(own.current));
  const isNewRow = wanted.current !== null || follows || own.current === null;
  const stretch = nextStretch(buffer, own.current?.stretch ?? null, reader, isNewRow);
  const { begin, end } = stretch;

  const virtualizer = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    count: end - begin,
    getScrollElement: () => scroller.current,
    getItemKey: useCallback((index: number) => buffer.keyAt(begin + index), [buffer, begin]),
    estimateSize: useCallback(
      (index: number) => {
        const line = buffer.lineAt(begin + index);
        if (line === null) return GAP_PX;
        const known = painted.get(line.position);
        if (known !== undefined || !wraps) return known ?? LINE_PX;
        const lines = Math.floor(line.message.length / WRAPPED.columns);
        return LINE_PX * Math.min(Math.max(lines, 1), WRAPPED.mostLines);
      },
      [buffer, begin, wraps, painted],
    ),
    measureElement: heightOf,
    overscan: OVERSCAN,
    paddingStart: TOP_PX + begin * LINE_PX,
    paddingEnd: BOTTOM_PX + (buffer.rowCount - end) * LINE_PX,
    // going to the first line brings what stands above it into view too
    scrollPaddingStart: TOP_PX,
    anchorTo: 'end',
    useFlushSync: false,
    // Near where the reading begins, and never further down than the box can be scrolled.
    initialOffset: () => Math.max(0, LINE_PX * (follows ? buffer.rowCount : rowOf(store)) - innerHeight),
  });
  own.current = { stretch, virtualizer };

  useLayoutEffect(() => {
    if (store.place.kind === 'newest') virtualizer.scrollToEnd();
  }, [store, virtualizer]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(() => {
    if (follows) virtualizer.scrollToEnd();
    if (virtualizer.itemSizeCache.size > MOST_HEIGHTS) forgetHeights(virtualizer);
  }, [version, follows, virtualizer]);

  // The stretch is there now.
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const { row, align } = wanted.current;
    wanted.current = null;
    virtualizer.scrollToIndex(row - begin, { align });
  });

  const [places] = useState((): LogPlaces => {
    return {
      startOf(row) {
        const { begin } = own.current?.stretch ?? stretch;
        const { measurementsCache, options } = virtualizer;
        const inside = measurementsCache[Math.min(Math.max(row - begin, 0), measurementsCache.length - 1)];
        if (inside === undefined) return options.paddingStart + (row - begin) * LINE_PX;
        return inside.start + (row - begin - inside.index) * LINE_PX;
      },
      rowNear: (px) => Math.max(0, rowAtPx(px, virtualizer, own.current?.stretch ?? stretch)),
      offset: () => virtualizer.scrollOffset ?? 0,
      seenPx: () => virtualizer.scrollRect?.height ?? 0,
      scrollToRow(row, align) {
        wanted.current = { row, align };
        draw();
      },
      scrollToOffset: (px) => virtualizer.scrollToOffset(px),
      scrollToEnd: () => virtualizer.scrollToEnd(),
    };
  });
  return {
    items: virtualizer.getVirtualItems(),
    begin,
    heightPx: virtualizer.getTotalSize(),
    measure: virtualizer.measureElement,
    places,
  };
}

/** @returns the row at which the reading begins, or -1 */
export function rowOf({ buffer, place }: LogStore): number {
  if (place.kind === 'newest') return buffer.rowCount - 1;
  if (place.kind === 'line') return buffer.indexFrom(place.position);
  return buffer.indexWhere(({ occurredAt }) => occurredAt >= place.at);
}

/** @returns the row at a place, by the numbers that rows had when the stretch was last laid out */
function rowAtPx(px: number, { measurementsCache, options, getVirtualItemForOffset }: LogVirtualizer, at: LogStretch) {
  const [top, last] = [options.paddingStart, measurementsCache[at.end - at.begin - 1]];
  const bottom = last?.end ?? top;
  if (px < top) return at.begin - Math.ceil((top - px) / LINE_PX);
  if (px > bottom) return at.end + Math.floor((px - bottom) / LINE_PX);
  return at.begin + (getVirtualItemForOffset(px)?.index ?? 0);
}

function readerOf({ stretch, virtualizer }: { stretch: LogStretch; virtualizer: LogVirtualizer }): number {
  return rowAtPx(virtualizer.scrollOffset ?? 0, virtualizer, stretch);
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
