'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useEffect, useEffectEvent } from 'react';
import type { ShownList } from '@/components/live/row-table';
import type { ListState } from '@/components/live/use-list';

/** Up to so many agents are loaded by themselves: only what is loaded can be sorted. */
export const MOST_LOADED = 2_000;

/**
 * Loads page after page behind the first one, which is there at once. What fails is asked for again on a press.
 *
 * Ordering: called by the component that made `state`, after it. In one below, `load` would ask for the page before.
 */
export function useWholeBoard(list: ShownList<AgentSummary> | undefined, state: ListState): void {
  const { next = null, rows = [] } = list ?? {};
  const { load, isLoading, error } = state;
  const loads = next !== null && rows.length < MOST_LOADED && !isLoading && error === null;
  const loadNext = useEffectEvent(load);
  useEffect(() => {
    if (loads && next !== null) loadNext();
  }, [loads, next]);
}
