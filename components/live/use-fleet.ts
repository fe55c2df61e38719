'use client';

import { useQuery } from '@tanstack/react-query';
import { createContext, useContext, useState, useSyncExternalStore } from 'react';
import { useHydrated } from '@/components/ui/clock';
import type { FleetStore, Held } from './fleet-store';

interface FleetStores {
  fleet: FleetStore;
  /** The rows that the server sent. The first browser render uses them to match the server's markup. */
  first: FleetStore;
}

export const FleetContext = createContext<FleetStores | null>(null);

export function useFleetStores(): FleetStores {
  const stores = useContext(FleetContext);
  if (stores === null) throw new Error('LiveProvider is missing above this component');
  return stores;
}

/** @param select returns a stable value until its subject changes; only then does the component render */
export function useFleet<Selected>(select: (fleet: FleetStore) => Selected): Selected {
  const { fleet, first } = useFleetStores();
  return useSyncExternalStore(
    fleet.subscribe,
    () => select(fleet),
    () => select(first),
  );
}

/** Adds the rows that the server read for the page. Newer rows stay. */
export function useInitialData(start: (fleet: FleetStore) => void): void {
  const { fleet, first } = useFleetStores();
  const hydrated = useHydrated();
  useState(() => {
    if (!hydrated) start(first);
    start(fleet);
  });
}

/** A fleet list or row that is read if unknown, and again after a gap. */
interface FleetQuery<Answer> {
  kind: 'list' | 'row';
  table: Held;
  /** Name of the list or id of the row. */
  of: string;
  load: (signal: AbortSignal) => Promise<Answer>;
  /** Puts the response into the store. */
  take: (fleet: FleetStore, answer: Answer) => void;
  enabled?: boolean;
}

export function fleetQueryKey(kind: FleetQuery<unknown>['kind'], table: Held, of: string) {
  return ['fleet', kind, table, of] as const;
}

/** State of the request; the rows are in the store. */
export function useFleetQuery<Answer>({ kind, table, of, load, take, enabled = true }: FleetQuery<Answer>) {
  const { fleet } = useFleetStores();
  return useQuery({
    queryKey: fleetQueryKey(kind, table, of),
    queryFn: async ({ signal }) => {
      if (kind === 'list') fleet.hold(table, of);
      await applyUnlessReset(fleet, load(signal), (answer) => take(fleet, answer));
      return fleet.resets;
    },
    initialData: () => {
      const isKnown = kind === 'list' ? fleet[table].isRead(of) : fleet[table].get(of) !== undefined;
      return isKnown ? fleet.resets : undefined;
    },
    enabled,
  });
}

/** @throws if the request was sent before a gap */
export async function applyUnlessReset<Answer>(
  fleet: FleetStore,
  asked: Promise<Answer>,
  take: (answer: Answer) => void,
): Promise<Answer> {
  const { resets } = fleet;
  const answer = await asked;
  if (resets !== fleet.resets) throw new Error('Connection interrupted. Retry.');
  take(answer);
  return answer;
}
