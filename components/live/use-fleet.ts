'use client';

import { useQuery } from '@tanstack/react-query';
import { createContext, useContext, useState, useSyncExternalStore } from 'react';
import { useHydrated } from '@/components/ui/clock';
import type { FleetStore, TableName } from './fleet-store';

interface FleetStores {
  fleet: FleetStore;
  /** The rows that the server sent. The first browser render uses them to match the server's markup. */
  first: FleetStore;
}

export const FleetContext = createContext<FleetStores | null>(null);

export function useFleetStores(): FleetStores {
  const stores = useContext(FleetContext);
  if (stores === null) throw new Error('LiveProvider is missing');
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
interface FleetQuery<Body> {
  kind: 'list' | 'row';
  table: TableName;
  /** Name of the list or id of the row. */
  of: string;
  load: (signal: AbortSignal) => Promise<Body>;
  /** Stores the response. */
  put: (fleet: FleetStore, response: Body) => void;
  enabled?: boolean;
}

export function fleetQueryKey(kind: FleetQuery<unknown>['kind'], table: TableName, of: string) {
  return ['fleet', kind, table, of] as const;
}

/** State of the request; the rows are in the store. */
export function useFleetQuery<Body>({ kind, table, of, load, put, enabled = true }: FleetQuery<Body>) {
  const { fleet } = useFleetStores();
  return useQuery({
    queryKey: fleetQueryKey(kind, table, of),
    queryFn: async ({ signal }) => {
      if (kind === 'list') fleet.retain(table, of);
      await applyUnlessReset(fleet, load(signal), (response) => put(fleet, response));
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
export async function applyUnlessReset<Body>(
  fleet: FleetStore,
  request: Promise<Body>,
  put: (response: Body) => void,
): Promise<Body> {
  const { resets } = fleet;
  const response = await request;
  if (resets !== fleet.resets) throw new Error('Connection interrupted. Retry.');
  put(response);
  return response;
}
