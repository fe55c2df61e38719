'use client';

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { knownUntil, knowUntil, useServerNow } from '@/components/ui/now';
import { type ConnectionState, initialConnectionState, isStale } from './connection-state';
import { RequestError } from './fetch-json';
import { FleetStore, type Held } from './fleet-store';
import { LiveClient } from './live-client';
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

/** What a page has given up asking for while the server was away, it asks for again once the server is back. */
export function askAgainOnceLive(live: Pick<LiveClient, 'state' | 'onState'>, queryClient: QueryClient): void {
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
 * While the server says nothing, nothing on the page goes on: its clocks stand at the time up to which it is known, and
 * `data-stale` on the document stops and greys what moves to say that something works.
 *
 * @param loadedAt when the page began to load, by the browser's clock: it is known up to then at least
 */
export function standStillWhileStale(live: Pick<LiveClient, 'state' | 'onState'>, loadedAt: number): void {
  const page = document.documentElement;
  live.onState(() => {
    const { status, asOf } = live.state;
    const stale = isStale(status);
    page.toggleAttribute('data-stale', stale);
    // If the clock was set back since, the page has yet to begin loading by it, which says nothing.
    const now = Date.now();
    const since = Math.max(asOf ?? 0, loadedAt > now ? 0 : loadedAt);
    knowUntil(stale ? since || (knownUntil() ?? now) : null);
  });
}

/** Changes the states of the sessions on the page as time passes: an agent that is still for a while is at rest. */
export function StateClock({ fleet }: { fleet: FleetStore }) {
  const dueAt = useServerNow((now) => {
    const first = fleet.stateDueAt;
    return first !== null && first <= now ? now : null;
  });
  const last = useRef(0);
  useEffect(() => {
    if (dueAt === null || dueAt === last.current) return;
    last.current = dueAt;
    // The rules come when they are needed for the first time. Without them the server tells all the same.
    import('@interlude/protocol/projections/resolve-state').then(
      ({ stateAt }) => fleet.passTime(dueAt, stateAt),
      () => {},
    );
  }, [fleet, dueAt]);
  return null;
}
