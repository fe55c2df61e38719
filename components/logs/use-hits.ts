'use client';

import type { Position } from '@interlude/protocol/position';
import { useState } from 'react';
import type { LogStore } from './log-store';
import { useLogStore } from './use-log-store';

/** So many pages without a hit are looked through at a key. */
const MOST_PAGES = 50;

/**
 * Walking from hit to hit.
 *
 * @param store a reading of the lines that the search finds; null while nothing is searched for
 * @param at the hit the reader is at, or null
 */
export function useHits(store: LogStore | null, at: Position | null, onHit: (position: Position) => void) {
  const [isSeeking, setIsSeeking] = useState(false);
  useLogStore(store, ({ version }) => version());
  const count = store?.window.lineCount ?? 0;
  const isHit = at !== null && (store?.window.indexOf(at) ?? -1) >= 0;
  const number = isHit ? (store?.window.rankOf(at) ?? 0) + 1 : null;

  const step = async (way: 1 | -1) => {
    if (store === null || isSeeking) return;
    setIsSeeking(true);
    const found = await nextHit(store, at, way);
    setIsSeeking(false);
    if (found !== null) onHit(found);
  };
  return { count, number, hasMore: store?.window.hasMore ?? false, isSeeking, step };
}

async function nextHit(store: LogStore, at: Position | null, way: 1 | -1): Promise<Position | null> {
  const { window } = store;
  for (let page = 0; page < MOST_PAGES; page++) {
    const index = rowBeside(store, at, way);
    store.readAt(window.numberAt(Math.max(0, index)));
    const row = window.rowAt(index);
    if (row?.kind === 'line') return row.line.position;
    // the hit the reader is at may have been let go of as well
    if (row?.kind === 'missing' && at !== null && page === 0) await store.open({ kind: 'line', position: at });
    else if (row !== null) await store.fill(row, way > 0 ? 'above' : 'below');
    else if (way < 0 && window.older !== null) await store.fillGap(window.older, 'below');
    else return null;
    if (store.error !== null) return null;
  }
  return null;
}

/** Without a hit to begin at, the newest. */
function rowBeside({ window }: LogStore, at: Position | null, way: 1 | -1): number {
  if (at === null) return window.rowCount - 1;
  const index = window.indexFrom(at);
  if (index < 0) return way < 0 ? window.rowCount - 1 : window.rowCount;
  const isThere = window.lineAt(index)?.position === at;
  return way < 0 ? index - 1 : isThere ? index + 1 : index;
}
