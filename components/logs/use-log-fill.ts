'use client';

import { type RefObject, useEffect, useEffectEvent, useLayoutEffect, useState } from 'react';
import type { LogStore } from './log-store';
import { LINE_PX } from './log-stretch';
import type { LogRows } from './use-log-rows';

/** Nearer to what is missing than this many rows: time to load it. */
const AHEAD = 30;

/**
 * Loads what is missing near the reader, a page at a time: who hurries by is given what stands where they come to. What
 * was too much to be looked through waits for a click, so that a log that runs faster than it is searched does not load
 * for ever.
 *
 * @returns loads what is missing in a row
 */
export function useLogFill(options: {
  store: LogStore;
  version: number;
  rows: LogRows;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
}): (row: number) => void {
  const { store, version, rows, scroller, follows } = options;
  const { window } = store;
  const [firstRow, lastRow] = [rows.begin + (rows.items[0]?.index ?? 0), rows.begin + (rows.items.at(-1)?.index ?? 0)];

  // What is loaded above the line that is read pushes it down: it is brought back to where it was.
  const [held, hold] = useState<{ line: number; below: number } | null>(null);
  const bringBack = useEffectEvent(({ line, below }: { line: number; below: number }) =>
    rows.scrollToOffset(rows.startOf(window.indexOfNumber(line)) - below),
  );
  useLayoutEffect(() => {
    if (held !== null) bringBack(held);
  }, [held]);

  const fill = (index: number) => {
    const [row, below] = [window.rowAt(index), window.lineAt(index + 1)];
    if (row === null || row.kind === 'line') return;
    const { scrollTop = 0, clientHeight = 0 } = scroller.current ?? {};
    const start = rows.startOf(index);
    // who came from below, and sees nothing of what is above, wants what is just before what they read
    const isFirstSeen = row.kind === 'more' && start < scrollTop + LINE_PX && start > scrollTop - LINE_PX;
    const from = follows || start < scrollTop + clientHeight / 2 ? 'below' : 'above';
    const filled = store.fill(row, from);
    if (!follows && isFirstSeen && below !== null) {
      const next = rows.startOf(index + 1) - scrollTop;
      void filled.then(() => hold({ line: below.line, below: next }));
    }
  };

  const fillNear = useEffectEvent(() => {
    if (store.isLoading() || store.error !== null) return;
    // led away from the end they followed: whether they stay there is known soon, and what is loaded would end it
    if (follows && lastRow < window.rowCount - 1) return;
    const seen = Array.from({ length: lastRow - firstRow + 1 }, (_, at) => firstRow + at);
    const ahead = Array.from({ length: AHEAD }, (_, at) => [firstRow - at - 1, lastRow + at + 1]).flat();
    const isWanted = (index: number) => {
      const row = window.rowAt(index);
      return row !== null && row.kind !== 'line' && !row.gap.skipped;
    };
    const wanted = [...seen, ...(follows ? [] : ahead)].find(isWanted);
    if (wanted !== undefined) fill(wanted);
    else if (window.older !== null && !follows && firstRow < AHEAD) void store.fillGap(window.older, 'below');
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came or was scrolled to
  useEffect(() => fillNear(), [store, version, firstRow, lastRow, follows]);

  return fill;
}
