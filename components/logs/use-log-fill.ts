'use client';

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { Gap } from './log-buffer';
import type { LogStore } from './log-store';
import { LINE_PX, type LogPlaces } from './use-log-rows';

/** Nearer to what is missing than this many rows: time to load it. */
const AHEAD = 30;

/**
 * Loads what is missing near the reader. What had to be let go of waits for a click, so that a log that runs faster
 * than it is read does not load for ever.
 */
export function useLogFill(options: {
  store: LogStore;
  version: number;
  places: LogPlaces;
  /** The first and the last that is laid out. */
  firstRow: number;
  lastRow: number;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
}): (gap: Gap, row: Element) => void {
  const { store, version, places, firstRow, lastRow, scroller, follows } = options;
  const { buffer } = store;

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came or was scrolled to
  useEffect(() => {
    const wanted = (gap: Gap) => !store.isLoading(gap) && store.errorOf(gap) === null;
    const { older, newer } = buffer;
    const fits = buffer.rowCount * LINE_PX < (scroller.current?.clientHeight ?? 0) * 1.5;
    if (older && wanted(older) && (follows ? fits : firstRow < AHEAD)) void store.fill(older, 'below');
    if (newer && wanted(newer) && lastRow > buffer.rowCount - AHEAD) void store.fill(newer, 'above');
    for (let index = firstRow; index <= lastRow; index++) {
      const row = buffer.rowAt(index);
      if (row?.kind !== 'gap' || row.gap.skipped || !wanted(row.gap)) continue;
      void store.fill(row.gap, follows || isAbove(index, places) ? 'below' : 'above');
    }
  }, [store, version, firstRow, lastRow, follows, places]);

  // What is loaded above the line that is read pushes it down: it is brought back to where it was.
  const held = useRef<{ position: Position; below: number } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(() => {
    if (held.current === null || store.isLoading()) return;
    const { position, below } = held.current;
    held.current = null;
    const row = buffer.indexOf(position);
    if (row >= 0) places.scrollToOffset(places.startOf(row) - below);
  }, [version, store, places]);

  return useCallback(
    (gap, row) => {
      const index = Number(row.closest<HTMLElement>('[data-row]')?.dataset.row);
      const line = buffer.lineAt(index + 1);
      // who came from below, and sees nothing of what is above, wants what is just before what they read
      const isFromBelow = places.startOf(index) < places.offset() + LINE_PX;
      if (isFromBelow && line !== null) {
        held.current = { position: line.position, below: places.startOf(index + 1) - places.offset() };
      }
      void store.fill(gap, isFromBelow ? 'below' : 'above');
    },
    [store, buffer, places],
  );
}

/** Whether a row stands in the upper half of what is seen, or above it. */
function isAbove(row: number, places: LogPlaces): boolean {
  return places.startOf(row) < places.offset() + places.seenPx() / 2;
}
