import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { pauseUnref } from './yield-to-loop';

interface FollowedServer {
  listenUrl: string;
  authToken: string | undefined;
  counter: () => Promise<number>;
}

const POLL_MS = 250;
/** Poll interval while a feed is open. */
const SELDOM_MS = 1_000;
const OPEN_AGAIN_MS = 1_000;
/**
 * Unreported moves after which the feed counts as dead. Polling may see a few moves before a live feed reports them.
 */
const DEAD_AT = 3;

/**
 * Detects commits of other processes to a libSQL server: through its change feed if it has one, otherwise by polling the
 * counter four times a second.
 *
 * Ordering: a call means that the counter may have moved; the callee reads it.
 * Failure: a feed that ends, or stays silent while the counter moves, is reopened. The counter is polled in the
 * meantime, and less often while a feed is open.
 *
 * @returns a function that stops following
 * @see https://github.com/tursodatabase/libsql/blob/main/docs/HTTP_V2_SPEC.md and sqld's `GET /beta/listen`
 */
export function followCounter(
  { listenUrl, authToken, counter }: FollowedServer,
  onMove: () => void,
  { pollMs = POLL_MS, seldomMs = SELDOM_MS, openAgainMs = OPEN_AGAIN_MS } = {},
): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let isFed = false;
  /** Moves of the counter that the open feed did not report. */
  let missed = 0;
  let feed = new AbortController();
  void listen();
  void poll();
  return () => stop.abort();

  async function listen(): Promise<void> {
    const headers: Record<string, string> = authToken === undefined ? {} : { authorization: `Bearer ${authToken}` };
    while (!signal.aborted) {
      try {
        feed = new AbortController();
        const response = await abortableFetch(listenUrl, { headers, signal: AbortSignal.any([signal, feed.signal]) });
        const isFeed = response.ok && response.headers.get('content-type')?.startsWith('text/event-stream') === true;
        if (!isFeed || response.body === null) {
          await response.body?.cancel();
          // A server without a feed refuses permanently. A failing server may have a feed later.
          if (response.status < 500) return;
        } else {
          isFed = true;
          // Covers commits before the feed opened.
          onMove();
          for await (const _ of response.body) {
            missed = 0;
            if (!signal.aborted) onMove();
          }
        }
      } catch {
        // Reopened below.
      }
      isFed = false;
      missed = 0;
      await pauseUnref(openAgainMs);
    }
  }

  async function poll(): Promise<void> {
    let known: number | null = null;
    while (!signal.aborted) {
      const newest: number | null = await counter().catch(() => null);
      if (newest !== null && newest !== known && !signal.aborted) {
        known = newest;
        onMove();
        if (isFed) missed += 1;
        if (missed === DEAD_AT) feed.abort();
      }
      await pauseUnref(isFed ? seldomMs : pollMs);
    }
  }
}

/**
 * Shares one follower among all listeners, and stops it with the last listener.
 *
 * Ordering: a new listener is called once for earlier commits, even if the other listeners already were.
 *
 * @param start starts a follower that calls back soon, and returns a function that stops the follower
 */
export function shareFollower(start: (onMove: () => void) => () => void): (onMove: () => void) => () => void {
  const listeners = new Set<() => void>();
  let stop: (() => void) | null = null;
  return (onMove) => {
    // A new function per listener, so the same callback can be registered twice.
    const notify = () => {
      try {
        onMove();
      } catch (error) {
        serverLog('error', 'a listener of the counter failed', { error });
      }
    };
    listeners.add(notify);
    const notifyAll = () => {
      for (const each of listeners) each();
    };
    if (stop === null) stop = start(notifyAll);
    else queueMicrotask(() => listeners.has(notify) && notify());
    return () => {
      listeners.delete(notify);
      if (listeners.size > 0) return;
      stop?.();
      stop = null;
    };
  };
}

/** URL of a server's change feed, if it has one. @param url `http:` or `https:` */
export function listenUrlOf(url: string): string {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/$/, '')}/beta/listen`;
  address.search = '?table=counter';
  return address.href;
}
