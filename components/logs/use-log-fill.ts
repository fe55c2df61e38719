'use client';

import type { Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { Gap } from './log-buffer';
import type { LogStore } from './log-store';
import { LINE_PX } from './use-log-rows';

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
    const fits = buffer.rowCount * LINE_PX < (scroller.current?.clientHeight ?? 0) * 1.5;
    if (older && wanted(older) && (follows ? fits : first < AHEAD)) void store.fill(older, 'below');
    if (newer && wanted(newer) && last > buffer.rowCount - AHEAD) void store.fill(newer, 'above');
    for (let index = first; index <= last; index++) {
      const row = buffer.rowAt(index);
      if (row?.kind !== 'gap' || row.gap.skipped || !wanted(row.gap)) continue;
      void store.fill(row.gap, follows || isAbove(index, virtualizer) ? 'below' : 'above');
    }
  }, [store, version, first, last, follows]);

  // What is loaded above the line that is read pushes it down: it is brought back to where it was.
  const held = useRef<{ position: Position; below: number } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(() => {
    if (held.current === null || store.isLoading()) return;
    const { position, below } = held.current;
    held.current = null;
    const start = virtualizer.measurementsCache[buffer.indexOf(position)]?.start;
    if (start !== undefined) virtualizer.scrollToOffset(start - below);
  }, [version, store, virtualizer]);

  return useCallback(
    (gap, row) => {
      const { scrollOffset, measurementsCache } = virtualizer;
      const index = Number(row.closest<HTMLElement>('[data-index]')?.dataset.index);
      const [line, start] = [buffer.lineAt(index + 1), measurementsCache[index + 1]?.start];
      // who came from below, and sees nothing of what is above, wants what is just before what they read
      const isFromBelow = (measurementsCache[index]?.start ?? 0) < (scrollOffset ?? 0) + LINE_PX;
      if (isFromBelow && line !== null && start !== undefined) {
        held.current = { position: line.position, below: start - (scrollOffset ?? 0) };
      }
      void store.fill(gap, isFromBelow ? 'below' : 'above');
    },
    [store, buffer, virtualizer],
  );
}

/** Whether a row stands in the upper half of what is seen, or above it. */
function isAbove(index: number, virtualizer: Virtualizer<HTMLDivElement, HTMLDivElement>): boolean {
  const start = virtualizer.measurementsCache[index]?.start ?? 0;
  return start < (virtualizer.scrollOffset ?? 0) + (virtualizer.scrollRect?.height ?? 0) / 2;
}
