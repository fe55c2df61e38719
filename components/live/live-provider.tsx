'use client';

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { askAgainOnceLive } from './ask-again';
import { type ConnectionState, initialConnectionState } from './connection-state';
import { RequestError } from './fetch-json';
import { FleetStore, type Held } from './fleet-store';
import { LiveClient } from './live-client';
import { standStillWhileStale } from './stand-still';
import { StateClock } from './state-clock';
import { FleetContext } from './use-fleet';

const LiveContext = createContext<() => LiveClient>(() => {
  throw new Error('LiveProvider is missing above this component');
});

const isServer = typeof window === 'undefined';

function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // A snapshot is kept current by the stream; fetching it again is only ever asked for by a gap.
        staleTime: Number.POSITIVE_INFINITY,
        // A render of the server leaves nothing: what it holds for ten minutes, it would hold with all that it read.
        gcTime: isServer ? Number.POSITIVE_INFINITY : 10 * 60_000,
        refetchOnWindowFocus: false,
        // The stores keep unchanged rows identical themselves; comparing ten thousand turns again would cost a frame.
        structuralSharing: false,
        // A server on this machine is there without any network.
        networkMode: 'always',
        retry: (failures, error) => !(error instanceof RequestError && error.status < 500) && failures < 5,
      },
    },
  });
}

/** One live connection and one of each store for the page. Nothing connects before the first topic is asked for. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const [queryClient] = useState(newQueryClient);
  const [stores] = useState(() => ({ fleet: new FleetStore(), first: new FleetStore() }));
  const [live] = useState(() => {
    let client: LiveClient | null = null;
    return () => {
      if (client === null) {
        client = new LiveClient();
        askAgainOnceLive(client, queryClient);
        standStillWhileStale(client, performance.timeOrigin);
      }
      return client;
    };
  });
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

/** The one subscription to the fleet: from where the store wants it. */
function useFollowedFleet(fleet: FleetStore, live: () => LiveClient, queryClient: QueryClient): void {
  const start = useSyncExternalStore(
    fleet.subscribe,
    () => fleet.start,
    () => null,
  );
  useEffect(() => {
    if (start === null) return;
    return live().subscribe('fleet', start.after, {
      frames: (frames) => fleet.takeFrames(frames),
      reset: () => {
        fleet.reset();
        void queryClient.invalidateQueries({ queryKey: ['fleet'] });
      },
    });
  }, [fleet, start, live, queryClient]);

  // A list that has not been shown for ten minutes.
  useEffect(
    () =>
      queryClient.getQueryCache().subscribe(({ type, query }) => {
        const [scope, kind, table, name] = query.queryKey;
        if (type === 'removed' && scope === 'fleet' && kind === 'list') fleet.drop(table as Held, name as string);
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
