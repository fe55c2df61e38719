import { pauseIdly } from './next-turn';

/**
 * Hears of what other processes commit to a libSQL server: by its feed of changes where it has one, and by a look at the
 * counter, four times a second, where it has none.
 *
 * Ordering: a call says that the counter may have moved; whoever is called reads how far.
 * Failure: a feed that ends is opened again. Meanwhile, and beside it, the counter is looked at: a feed that has died
 * without a word costs a second, and nothing else.
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

/** @returns the way to stop */
export function followCounter({ listenUrl, authToken, counter }: FollowedServer, onMove: () => void): () => void {
  const over = new AbortController();
  const { signal } = over;
  let isFed = false;
  void listen();
  void look();
  return () => over.abort();

  async function listen(): Promise<void> {
    const headers: Record<string, string> = authToken === undefined ? {} : { authorization: `Bearer ${authToken}` };
    while (!signal.aborted) {
      try {
        const answer = await fetch(listenUrl, { headers, signal });
        const isFeed = answer.ok && answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
        if (!isFeed || answer.body === null) {
          await answer.body?.cancel();
          // a server without one says so for good; one that is not well may have one later
          if (answer.status < 500) return;
        } else {
          isFed = true;
          // what came before it was open
          onMove();
          for await (const _ of answer.body) if (!signal.aborted) onMove();
        }
      } catch {
        // it is opened again
      }
      isFed = false;
      await pauseIdly(OPEN_AGAIN_MS);
    }
  }

  async function look(): Promise<void> {
    let known: number | null = null;
    while (!signal.aborted) {
      const newest: number | null = await counter().catch(() => null);
      if (newest !== null && newest !== known && !signal.aborted) {
        known = newest;
        onMove();
      }
      await pauseIdly(isFed ? SELDOM_MS : POLL_MS);
    }
  }
}

/** Where a server has its feed of the counter, if it has one. */
export function listenUrlOf(url: string): string {
  const address = new URL(url.replace(/^libsql:/, 'https:'));
  address.pathname = `${address.pathname.replace(/\/$/, '')}/beta/listen`;
  address.search = '?table=counter';
  return address.href;
}
