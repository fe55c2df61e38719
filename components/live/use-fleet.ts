'use client';

import { useQuery } from '@tanstack/react-query';
import { createContext, useContext, useState, useSyncExternalStore } from 'react';
import { useHydrated } from '@/components/ui/now';
import type { FleetStore, Held } from './fleet-store';

interface FleetStores {
  fleet: FleetStore;
  /** What came with the page: the browser renders it once more as the server did, whatever has come since. */
  first: FleetStore;
}

export const FleetContext = createContext<FleetStores | null>(null);

export function useFleetStores(): FleetStores {
  const stores = useContext(FleetContext);
  if (stores === null) throw new Error('LiveProvider is missing above this component');
  return stores;
}

/** @param select gives the same object until what it is about has changed; only then does the component render again */
export function useFleet<Selected>(select: (fleet: FleetStore) => Selected): Selected {
  const { fleet, first } = useFleetStores();
  return useSyncExternalStore(
    fleet.subscribe,
    () => select(fleet),
    () => select(first),
  );
}

/** Takes in what the server read for the page: what is known later than that stays. */
export function useStart(start: (fleet: FleetStore) => void): void {
  const { fleet, first } = useFleetStores();
  const hydrated = useHydrated();
  useState(() => {
    if (!hydrated) start(first);
    start(fleet);
  });
}

/** Something of the fleet that is to be read where it is not known yet, and again after a gap. */
interface Reading<Answer> {
  kind: 'list' | 'row';
  table: Held;
  /** Of a list its name, of a row its id. */
  of: string;
  load: (signal: AbortSignal) => Promise<Answer>;
  /** Puts what was read into the store. */
  take: (fleet: FleetStore, answer: Answer) => void;
  enabled?: boolean;
}

/** What a reading goes by among the queries. */
export function readingKey(kind: Reading<unknown>['kind'], table: Held, of: string) {
  return ['fleet', kind, table, of] as const;
}

/** Tells how the reading goes; what was read is in the store. */
export function useReading<Answer>({ kind, table, of, load, take, enabled = true }: Reading<Answer>) {
  const { fleet } = useFleetStores();
  return useQuery({
    queryKey: readingKey(kind, table, of),
    queryFn: async ({ signal }) => {
      if (kind === 'list') fleet.hold(table, of);
      await takeOf(fleet, load(signal), (answer) => take(fleet, answer));
      return fleet.resets;
    },
    initialData: () => {
      const isKnown = kind === 'list' ? fleet[table].isRead(of) : fleet[table].get(of) !== undefined;
      return isKnown ? fleet.resets : undefined;
    },
    enabled,
  });
}

export interface MorePages {
  /** Loads the next page. */
  load: () => void;
  isLoading: boolean;
  error: Error | null;
}

/**
 * The way to what a list has beyond what is loaded.
 *
 * Failure: says so, and the same page is asked for again by the next `load`.
 */
export function useMorePages<Page>(options: {
  of: string;
  next: string | null | undefined;
  load: (after: string) => Promise<Page>;
  take: (fleet: FleetStore, page: Page, after: string) => void;
}): MorePages {
  const { fleet } = useFleetStores();
  const { of, next, load, take } = options;
  const page = useQuery({
    queryKey: ['more', of, next],
    queryFn: async () => {
      if (next != null) await takeOf(fleet, load(next), (page) => take(fleet, page, next));
      return fleet.resets;
    },
    enabled: false,
    retry: false,
  });
  return { load: () => void page.refetch({ cancelRefetch: false }), isLoading: page.isFetching, error: page.error };
}

/** @throws where the answer was asked for before a gap */
export async function takeOf<Answer>(
  fleet: FleetStore,
  asked: Promise<Answer>,
  take: (answer: Answer) => void,
): Promise<Answer> {
  const { resets } = fleet;
  const answer = await asked;
  if (resets !== fleet.resets) throw new Error('This was asked for before a gap. Ask again.');
  take(answer);
  return answer;
}
