import { serverLog } from '@interlude/protocol/server-log.mjs';
import { pauseUnref } from './yield-to-loop';

/**
 * Hears of what other processes commit to a libSQL server: by its feed of changes where it has one, and by a look at the
 * counter, four times a second, where it has none.
 *
 * Ordering: a call says that the counter may have moved; whoever is called reads how far.
 * Failure: a feed that ends is opened again, and so is one that tells nothing while the counter moves. Meanwhile, and beside
 * it, the counter is looked at.
 *
 * @see https://github.com/tursodatabase/libsql/blob/main/docs/HTTP_V2_SPEC.md and sqld's `GET /beta/listen`
 */
export interface FollowedServer {
  /** Where the feed is. */
  listenUrl: string;
  authToken: string | undefined;
  /** Reads the counter. */
  counter: () => Promise<number>;
}

const POLL_MS = 250;
/** Beside a feed that is open. */
const SELDOM_MS = 1_000;
const OPEN_AGAIN_MS = 1_000;
/** A move that the feed will tell in a moment may be seen before. */
const DEAD_AT = 3;

/** @returns the way to stop */
export function followCounter(
  { listenUrl, authToken, counter }: FollowedServer,
  onMove: () => void,
  { pollMs = POLL_MS, seldomMs = SELDOM_MS, openAgainMs = OPEN_AGAIN_MS } = {},
): () => void {
  const over = new AbortController();
  const { signal } = over;
  let isFed = false;
  /** Moves that the counter has made while the feed, which is open, told none. */
  let missed = 0;
  let feed = new AbortController();
  void listen();
  void look();
  return () => over.abort();

  async function listen(): Promise<void> {
    const headers: Record<string, string> = authToken === undefined ? {} : { authorization: `Bearer ${authToken}` };
    while (!signal.aborted) {
      try {
        feed = new AbortController();
        const answer = await fetch(listenUrl, { headers, signal: AbortSignal.any([signal, feed.signal]) });
        const isFeed = answer.ok && answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
        if (!isFeed || answer.body === null) {
          await answer.body?.cancel();
          // a server without one says so for good; one that is not well may have one later
          if (answer.status < 500) return;
        } else {
          isFed = true;
          // what came before it was open
          onMove();
          for await (const _ of answer.body) {
            missed = 0;
            if (!signal.aborted) onMove();
          }
        }
      } catch {
        // it is opened again
      }
      isFed = false;
      missed = 0;
      await pauseUnref(openAgainMs);
    }
  }

  async function look(): Promise<void> {
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
 * One follower for all who want to hear, for as long as there are any.
 *
 * Ordering: who joins is called once for what came before, whether or not it was told to the others.
 *
 * @param start begins to follow, and calls back soon after. @returns how to stop that
 */
export function shareFollower(start: (onMove: () => void) => () => void): (onMove: () => void) => () => void {
  const joined = new Set<() => void>();
  let stop: (() => void) | null = null;
  return (onMove) => {
    // two who give the same function are two
    const tell = () => {
      try {
        onMove();
      } catch (error) {
        serverLog('error', 'a listener of the counter failed', { error });
      }
    };
    joined.add(tell);
    const tellAll = () => {
      for (const each of joined) each();
    };
    if (stop === null) stop = start(tellAll);
    else queueMicrotask(() => joined.has(tell) && tell());
    return () => {
      joined.delete(tell);
      if (joined.size > 0) return;
      stop?.();
      stop = null;
    };
  };
}

/** Where a server has its feed of the counter, if it has one. @param url as HTTP has it */
export function listenUrlOf(url: string): string {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/$/, '')}/beta/listen`;
  address.search = '?table=counter';
  return address.href;
}
