'use client';

import type { VirtualItem } from '@tanstack/react-virtual';
import { useEffect, useReducer, useRef } from 'react';
import { inTurn } from '@/components/ui/in-turn';
import { MORE_WEIGHT, rowsBefore } from './row-weight';

/**
 * The rows that are laid out: what is in sight, and what is near it as far as that is no more than is laid out without a
 * pause; the rest comes in turn, and what was there stays.
 */
export function useRowsInTurn(
  rows: readonly VirtualItem[],
  inSight: { startIndex: number; endIndex: number } | null,
  weightOf: (index: number) => number,
): readonly VirtualItem[] {
  const there = useRef<ReadonlySet<React.Key>>(new Set());
  const [, comeFurther] = useReducer((count: number) => count + 1, 0);
  const missing = rows.filter(({ key }) => !there.current.has(key));
  // The first of all come with the page's own first layout: only what is in sight.
  const most = there.current.size === 0 ? 0 : MORE_WEIGHT;
  const from = rowsBefore(missing.length, most, (at) => weightOf((missing[at] as VirtualItem).index));
  const waiting = new Set(
    missing.slice(0, from).filter(({ index }) => !inSight || index < inSight.startIndex || index > inSight.endIndex),
  );
  const shown = waiting.size === 0 ? rows : rows.filter((row) => !waiting.has(row));
  useEffect(() => {
    there.current = new Set(shown.map(({ key }) => key));
    if (waiting.size === 0) return;
    const turn = inTurn(comeFurther);
    return () => turn.cancel();
  });
  return shown;
}
