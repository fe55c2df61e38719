'use client';

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { clocksFrozenAt, correctClocks, freezeClocks, useServerNow } from '@/components/ui/clock';
import { type ConnectionState, initialConnectionState, isStale } from './connection-state';
import { RequestError } from './fetch-json';
import { FleetStore, type TableName } from './fleet-store';
import { checkHealth, LiveClient } from './live-client';
import { FleetContext } from './use-fleet';

const LiveContext = createContext<() => LiveClient>(() => {
  throw new Error('LiveProvider is missing');
});

const isServer = typeof window === 'undefined';

function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The stream keeps snapshots current. Only a gap fetches them again.
        staleTime: Number.POSITIVE_INFINITY,
        // On the server, a timer would retain everything that a render has read.
        gcTime: isServer ? Number.POSITIVE_INFINITY : 10 * 60_000,
        refetchOnWindowFocus: false,
        // The stores keep unchanged rows identical; comparing ten thousand turns would take a frame.
        structuralSharing: false,
        // A local server works offline.
        networkMode: 'always',
        retry: (failures, error) => !(error instanceof RequestError && error.status < 500) && failures < 5,
      },
    },
  });
}

/** Provides one live connection and one store of each kind. Connects on the first subscription. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const [queryClient] = useState(newQueryClient);
  const [stores] = useState(() => ({ fleet: new FleetStore(), first: new FleetStore() }));
  const [live] = useState(() => {
    let client: LiveClient | null = null;
    return () => {
      if (client === null) {
        client = new LiveClient();
        refetchOnceLive(client, queryClient);
        freezeWhenStale(client, performance.timeOrigin);
      }
      return client;
    };
  });
  useEffect(() => correctClocks(serverTime), []);
  useFollowedFleet(stores.fleet, live, queryClient);
  return (
    <LiveContext value={live}>
      <FleetContext value={stores}>
        <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
        <StateClock fleet={stores.fleet} />
      </FleetContext>
    </LiveContext>
  );
}

const serverTime = async () => Date.parse((await checkHealth()).headers.get('date') as string);

/** Subscribes to the fleet at the store's start position. */
function useFollowedFleet(fleet: FleetStore, live: () => LiveClient, queryClient: QueryClient): void {
  const start = useSyncExternalStore(
    fleet.subscribe,
    () => fleet.start,
    () => null,
  );
  useEffect(() => {
    if (start === null) return;
    return live().subscribe('fleet', start.after, {
      frames: (frames) => fleet.applyFrames(frames),
      reset: () => {
        fleet.reset();
        void queryClient.invalidateQueries({ queryKey: ['fleet'] });
      },
    });
  }, [fleet, start, live, queryClient]);

  // Drops a list that was not shown for ten minutes.
  useEffect(
    () =>
      queryClient.getQueryCache().subscribe(({ type, query }) => {
        const [scope, kind, table, name] = query.queryKey;
        if (type === 'removed' && scope === 'fleet' && kind === 'list') fleet.drop(table as TableName, name as string);
      }),
    [fleet, queryClient],
  );
}

export function useLiveClient(): () => LiveClient {
  return useContext(LiveContext);
}

const BEFORE_HYDRATION = initialConnectionState(0);

export function useConnectionState(): ConnectionState {
  const live = useLiveClient();
  return useSyncExternalStore(
    (listener) => live().onState(listener),
    () => live().state,
    () => BEFORE_HYDRATION,
  );
}

/** Repeats failed queries once the server is back. */
export function refetchOnceLive(live: Pick<LiveClient, 'state' | 'onState'>, queryClient: QueryClient): void {
  let wasLive = false;
  live.onState(() => {
    const isLive = live.state.status === 'live';
    if (isLive && !wasLive) {
      void queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' });
    }
    wasLive = isLive;
  });
}

/**
 * Freezes the page while the server is silent: clocks stop at the last known time, and `data-stale` on the document
 * stops and greys activity.
 *
 * @param loadedAt start of navigation by the browser's clock: the page is current at least up to then
 */
export function freezeWhenStale(live: Pick<LiveClient, 'state' | 'onState'>, loadedAt: number): void {
  const page = document.documentElement;
  live.onState(() => {
    const { status, asOf } = live.state;
    const stale = isStale(status);
    page.toggleAttribute('data-stale', stale);
    // If the clock was set back, `loadedAt` is in the future and means nothing.
    const now = Date.now();
    const since = Math.max(asOf ?? 0, loadedAt > now ? 0 : loadedAt);
    freezeClocks(stale ? since || (clocksFrozenAt() ?? now) : null);
  });
}

/** Updates the states of sessions as time passes. */
export function StateClock({ fleet }: { fleet: FleetStore }) {
  const dueAt = useServerNow((now) => {
    const first = fleet.stateDueAt;
    return first !== null && first <= now ? now : null;
  });
  const last = useRef(0);
  useEffect(() => {
    if (dueAt === null || dueAt === last.current) return;
    last.current = dueAt;
    // Loads the rules on first use. Without them the server's updates suffice.
    import('@interlude/protocol/projections/resolve-state').then(
      ({ stateAt }) => fleet.passTime(dueAt, stateAt),
      () => {},
    );
  }, [fleet, dueAt]);
  return null;
}
