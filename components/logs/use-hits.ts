'use client';

import { useState, useSyncExternalStore } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { LogStore } from './log-store';

/** So many pages without a hit are looked through at a key. */
const MOST_PAGES = 50;
const never = () => () => {};

/**
 * Walking from hit to hit.
 *
 * @param store a reading of the lines that the search finds; null while nothing is searched for
 * @param at the hit the reader is at, or null
 */
export function useHits(store: LogStore | null, at: Position | null, onHit: (position: Position) => void) {
  const [isSeeking, setIsSeeking] = useState(false);
  useSyncExternalStore(store?.subscribe ?? never, store?.version ?? zero, zero);
  const count = store?.buffer.lineCount ?? 0;
  const isHit = at !== null && (store?.buffer.indexOf(at) ?? -1) >= 0;
  const number = isHit ? (store?.buffer.rankOf(at) ?? 0) + 1 : null;

  const step = async (way: 1 | -1) => {
    if (store === null || isSeeking) return;
    setIsSeeking(true);
    const found = await nextHit(store, at, way);
    setIsSeeking(false);
    if (found !== null) onHit(found);
  };
  return { count, number, hasMore: store?.buffer.hasGaps ?? false, isSeeking, step };
}

function zero(): number {
  return 0;
}

async function nextHit(store: LogStore, at: Position | null, way: 1 | -1): Promise<Position | null> {
  const { buffer } = store;
  for (let page = 0; page < MOST_PAGES; page++) {
    const row = buffer.rowAt(rowBeside(store, at, way));
    if (row?.kind === 'line') return row.line.position;
    const gap = row?.gap ?? (way < 0 ? buffer.older : buffer.newer);
    if (gap === null) return null;
    await store.fill(gap, way > 0 ? 'above' : 'below');
    if (store.errorOf(gap) !== null) return null;
  }
  return null;
}

/** Without a hit to begin at, the newest. */
function rowBeside({ buffer }: LogStore, at: Position | null, way: 1 | -1): number {
  if (at === null) return buffer.rowCount - 1;
  const index = buffer.indexFrom(at);
  if (index < 0) return way < 0 ? buffer.rowCount - 1 : buffer.rowCount;
  const isThere = buffer.lineAt(index)?.position === at;
  return way < 0 ? index - 1 : isThere ? index + 1 : index;
}
