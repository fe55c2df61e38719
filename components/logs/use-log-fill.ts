'use client';

import type { Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect } from 'react';
import type { Gap } from './log-buffer';
import type { LogStore } from './log-store';

/** Nearer to what is missing than this many rows: time to load it. */
const AHEAD = 30;

/**
 * Loads what is missing near the reader. What had to be let go of waits for a click, so that a log that runs faster
 * than it is read does not load for ever.
 */
export function useLogFill(options: {
  store: LogStore;
  version: number;
  virtualizer: Virtualizer<HTMLDivElement, HTMLDivElement>;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
}): (gap: Gap, row: Element) => void {
  const { store, version, virtualizer, scroller, follows } = options;
  const { buffer } = store;
  const rows = virtualizer.getVirtualItems();
  const [first, last] = [rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0];

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came or was scrolled to
  useEffect(() => {
    const wanted = (gap: Gap) => !store.isLoading(gap) && store.errorOf(gap) === null;
    const { older, newer } = buffer;
    const fits = buffer.rowCount * 20 < (scroller.current?.clientHeight ?? 0) * 1.5;
    if (older && wanted(older) && (follows ? fits : first < AHEAD)) void store.fill(older, 'below');
    if (newer && wanted(newer) && last > buffer.rowCount - AHEAD) void store.fill(newer, 'above');
    for (let index = first; index <= last; index++) {
      const row = buffer.rowAt(index);
      if (row?.kind !== 'gap' || row.gap.skipped || !wanted(row.gap)) continue;
      void store.fill(row.gap, follows || isAbove(index, virtualizer) ? 'below' : 'above');
    }
  }, [store, version, first, last, follows]);

  return useCallback(
    (gap, row) => {
      const box = scroller.current?.getBoundingClientRect();
      const { top } = row.getBoundingClientRect();
      // who came from below wants what is just before what they read
      const fromBelow = box !== undefined && top < box.top + box.height / 2;
      void store.fill(gap, fromBelow ? 'below' : 'above');
    },
    [store, scroller],
  );
}

/** Whether a row stands in the upper half of what is seen, or above it. */
function isAbove(index: number, virtualizer: Virtualizer<HTMLDivElement, HTMLDivElement>): boolean {
  const start = virtualizer.measurementsCache[index]?.start ?? 0;
  return start < (virtualizer.scrollOffset ?? 0) + (virtualizer.scrollRect?.height ?? 0) / 2;
}
