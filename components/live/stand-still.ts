import { knowUntil } from '@/components/ui/now';
import { isStale } from './connection-state';
import type { LiveClient } from './live-client';

/**
 * While the server says nothing, nothing on the page goes on: its clocks stand at the time up to which it is known, and
 * `data-stale` on the document stops and greys what moves to say that something works.
 *
 * @param loadedAt when the page began to load, by the browser's clock: it is known up to then at least
 */
export function standStillWhileStale(live: Pick<LiveClient, 'state' | 'onState'>, loadedAt: number): void {
  live.onState(() => {
    const { status, asOf } = live.state;
    const stale = isStale(status);
    document.documentElement.toggleAttribute('data-stale', stale);
    // By a clock that was put back since, the page has not begun to load yet: that says nothing then.
    const now = Date.now();
    knowUntil(stale ? Math.max(asOf ?? 0, loadedAt > now ? 0 : loadedAt) || now : null);
  });
}
