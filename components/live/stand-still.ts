import { knownUntil, knowUntil } from '@/components/ui/now';
import { isStale } from './connection-state';
import type { LiveClient } from './live-client';

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
