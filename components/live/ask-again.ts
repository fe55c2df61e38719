import type { QueryClient } from '@tanstack/react-query';
import type { LiveClient } from './live-client';

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
