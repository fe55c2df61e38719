'use client';

import type { Position } from '@interlude/protocol/position';
import type { VirtualItem, Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffectEvent, useLayoutEffect, useState } from 'react';
import { useRowWindow } from '@/components/ui/row-window';
import type { LogStore } from './log-store';
import type { LogWindow } from './log-window';

/* oxlint-disable react-compiler/exhaustive-deps -- the window object is mutable: its version stands for its rows */

/** Estimate for a wrapped line until it is measured. */
const WRAPPED = { columns: 200, maxLines: 5 };
/** Number of rows laid out beyond either edge of the box. */
const OVERSCAN = 12;
/** Maximum number of heights kept for rows that differ from a plain line. */
const MAX_HEIGHTS = 20_000;

type LogVirtualizer = Virtualizer<HTMLDivElement, HTMLDivElement>;
type Align = 'center' | 'start' | 'auto';

export interface LogRows {
  /** The rows that are laid out, in order. */
  items: VirtualItem[];
  /** Row number of the item with index 0. */
  begin: number;
  /** The first row in sight. */
  topRow: number;
  /** Height of all rows. */
  heightPx: number;
  /** Height of the box. */
  boxPx: number;
  measure: (element: HTMLDivElement | null) => void;
  /** Top of a row in pixels. */
  startOf(row: number): number;
  scrollToRow(row: number, align: Align): void;
  scrollToOffset(px: number): void;
  scrollToEnd(): void;
}

/**
 * The rows near the reader. A line has its usual height unless it measures otherwise.
 *
 * The virtualizer visits all its rows whenever one is added, which takes longer than a frame for a million rows. It
 * gets a segment of several hundred rows around the reader.
 */
export function useLogRows(options: {
  store: LogStore;
  version: number;
  /** Heights of lines in the server's markup. */
  painted: ReadonlyMap<Position, number>;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
  wraps: boolean;
}): LogRows {
  const { store, version, painted, scroller, follows, wraps } = options;
  const { window } = store;
  const [laid, setLaid] = useState(() => segmentAround(window, follows ? window.rowCount - 1 : rowOf(store)));
  const [wanted, setWanted] = useState<{ row: number; align: Align } | null>(null);
  const stretch = currentSegment(window, laid, follows);
  const { begin, end, farPx } = stretch;

  const virtualizer = useRowWindow({
    scroller,
    follows,
    version,
    count: end - begin,
    // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows
    getItemKey: useCallback((index: number) => window.keyAt(begin + index), [window, begin, version]),
    // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows
    estimateSize: useCallback(
      (index: number) => {
        const line = window.lineAt(begin + index);
        const known = line === null ? linePx() : painted.get(line.position);
        if (line === null || known !== undefined || !wraps) return known ?? linePx();
        const lines = Math.floor(line.message.length / WRAPPED.columns);
        return linePx() * Math.min(Math.max(lines, 1), WRAPPED.maxLines);
      },
      [window, begin, wraps, painted, version],
    ),
    measureElement: heightOf,
    onChange(instance) {
      const row = rowAtPx(instance.scrollOffset ?? 0, instance, stretch, window);
      if (!isWithin(window, stretch, row)) setLaid(segmentAround(window, row));
    },
    overscan: OVERSCAN,
    paddingStart: TOP_PX + begin * farPx,
    paddingEnd: BOTTOM_PX + (window.rowCount - end) * farPx,
    // Scrolling to the first line also shows what is above it.
    scrollPaddingStart: TOP_PX,
    // Near the opening row, and never beyond the end of the box.
    initialOffset: () => Math.max(0, farPx * (follows ? window.rowCount : rowOf(store)) - innerHeight),
  });

  useLayoutEffect(() => {
    if (store.place.kind === 'newest') virtualizer.scrollToEnd();
  }, [store, virtualizer]);

  // The segment moves along while the reader follows the end.
  const keepUp = useEffectEvent(() => {
    if (stretch.mark.number !== laid.mark.number) setLaid(stretch);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows
  useLayoutEffect(() => {
    // oxlint-disable-next-line react-compiler/set-state-in-effect -- follows what the virtualizer has measured
    if (follows) keepUp();
    if (virtualizer.itemSizeCache.size > MAX_HEIGHTS) forgetHeights(virtualizer);
  }, [version, follows, virtualizer]);

  // The segment includes the row at this point.
  const goThere = useEffectEvent(({ row, align }: { row: number; align: Align }) =>
    virtualizer.scrollToIndex(row - begin, { align }),
  );
  useLayoutEffect(() => {
    if (wanted !== null) goThere(wanted);
  }, [wanted]);

  return {
    items: virtualizer.getVirtualItems(),
    begin,
    topRow: begin + (virtualizer.range?.startIndex ?? 0),
    heightPx: virtualizer.getTotalSize(),
    boxPx: virtualizer.scrollRect?.height ?? 0,
    measure: virtualizer.measureElement,
    startOf(row) {
      const { measurementsCache, options } = virtualizer;
      const inside = measurementsCache[Math.min(Math.max(row - begin, 0), measurementsCache.length - 1)];
      if (inside === undefined) return options.paddingStart;
      return inside.start + (row - begin - inside.index) * farPx;
    },
    scrollToRow(row, align) {
      if (!isWithin(window, stretch, row)) setLaid(segmentAround(window, row));
      setWanted({ row, align });
    },
    scrollToOffset: (px) => virtualizer.scrollToOffset(px),
    scrollToEnd: () => virtualizer.scrollToEnd(),
  };
}

/** @returns the opening row, or -1 */
export function rowOf({ window, place }: LogStore): number {
  if (place.kind === 'newest') return window.rowCount - 1;
  if (place.kind === 'line') return window.indexFrom(place.position);
  return window.indexWhere(({ occurredAt }) => occurredAt >= place.at);
}

function rowAtPx(px: number, virtualizer: LogVirtualizer, { begin, end }: LogSegment, window: LogStore['window']) {
  const { measurementsCache, options } = virtualizer;
  const bottom = measurementsCache[end - begin - 1]?.end ?? options.paddingStart;
  if (px < options.paddingStart || px > bottom) return farRowAt(window, px);
  return begin + (virtualizer.getVirtualItemForOffset(px)?.index ?? 0);
}

/** Uses the observer's measurement: reading a row's height forces a layout of all rows. */
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

/** Evicts the oldest heights. A row is measured again when it is laid out again. */
function forgetHeights({ itemSizeCache, getVirtualItems }: LogVirtualizer): void {
  const seen = new Set(getVirtualItems().map(({ key }) => key));
  let surplus = itemSizeCache.size - MAX_HEIGHTS / 2;
  for (const key of itemSizeCache.keys()) {
    if (surplus <= 0) return;
    surplus -= 1;
    if (!seen.has(key)) itemSizeCache.delete(key);
  }
}

/** Height of a line that does not wrap: `--log-line` in app/globals.css. The server assumes the usual density. */
export function linePx(): number {
  return typeof document !== 'undefined' && document.documentElement.dataset.density === 'compact' ? 16 : 20;
}

export const TOP_PX = 32;
export const BOTTOM_PX = 8;
/** Browsers limit a box to some 17 million pixels. In a longer log, rows far from the reader count as less. */
const MAX_PX = 12_000_000;
/** Rows on either side of the reader in a new segment. */
const REACH = 400;
/**
 * A new segment starts when the reader is this close to the end of the current one. More rows than the tallest screens
 * show.
 */
const MARGIN = 150;

/** Rows `begin` to `end` have their real heights; all others count as `farPx` high. */
interface LogSegment {
  begin: number;
  end: number;
  farPx: number;
  /** A line number and its distance from the segment's start, to find the segment again. */
  mark: { number: number; below: number };
}

/** The segment around a row. Its length is constant, so that the total height is too. */
export function segmentAround(window: LogWindow, row: number): LogSegment {
  const begin = Math.max(0, Math.min(row - REACH, window.rowCount - 2 * REACH));
  return segmentFrom(window, begin);
}

/** The segment after rows have changed; it includes the end while the reader follows it. */
export function currentSegment(window: LogWindow, { mark }: LogSegment, follows: boolean): LogSegment {
  const begin = Math.max(0, window.indexOfNumber(mark.number) - mark.below);
  if (follows && begin + 2 * REACH < window.rowCount) return segmentFrom(window, window.rowCount - REACH);
  return segmentFrom(window, begin);
}

/** True if the segment includes the rows that the reader may reach next. */
export function isWithin(window: LogWindow, { begin, end }: LogSegment, row: number): boolean {
  return (begin === 0 || row - begin >= MARGIN) && (end === window.rowCount || end - row >= MARGIN);
}

/** @returns the row at `px` once the segment is around it */
export function farRowAt(window: LogWindow, px: number): number {
  const { rowCount } = window;
  const farPx = farPxOf(rowCount);
  const near = REACH * linePx();
  const down = px - TOP_PX;
  if (rowCount <= 2 * REACH || down <= near) return Math.max(0, Math.min(Math.floor(down / linePx()), rowCount - 1));
  const row = Math.floor(REACH + (down - near) / farPx);
  if (row <= rowCount - REACH) return row;
  return Math.min(rowCount - 1, Math.floor(rowCount - 2 * REACH + (down - (rowCount - 2 * REACH) * farPx) / linePx()));
}

function segmentFrom(window: LogWindow, begin: number): LogSegment {
  const end = Math.min(window.rowCount, begin + 2 * REACH);
  const farPx = farPxOf(window.rowCount);
  for (let below = 0; begin + below < end; below++) {
    const line = window.lineAt(begin + below);
    if (line !== null) return { begin, end, farPx, mark: { number: line.line, below } };
  }
  return { begin, end, farPx, mark: { number: window.numberAt(begin), below: 0 } };
}

function farPxOf(rowCount: number): number {
  return Math.min(linePx(), MAX_PX / rowCount);
}
