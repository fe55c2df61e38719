import { AppError } from '@interlude/protocol/errors';
import { pause } from '@/db/yield-to-loop';

/** Wrong secrets per address and minute before throttling starts. */
const FREE_FAILURES = 20;
const WINDOW_MS = 60_000;
/** Milliseconds for which an address's requests are collected. */
const ROUND_MS = 600;
/** Requests admitted per round. With it, 260 concurrent requests from one address all finish within a second. */
const MAX_ADMITTED = 300;
const MAX_ADDRESSES = 10_000;

/** A request that waits for the end of its round, ranked at random. */
interface Waiter {
  rank: number;
}

/** Requests collected until `endsAt`. Plain data, because on some hosts a request can't wake another one. */
interface Round {
  endsAt: number;
  waiters: Set<Waiter>;
  /** Null until the timer of the round's first request fires. */
  admitted: ReadonlySet<Waiter> | null;
}

interface Client {
  /** Times of the latest wrong secrets, oldest first. */
  failedAt: number[];
  round: Round | null;
}

/**
 * Throttles guesses of human-chosen secrets. After FREE_FAILURES wrong ones from an address within a minute, its
 * requests are collected in rounds of ROUND_MS. At the end of a round, MAX_ADMITTED random requests proceed and the
 * others are refused. The right secret waits too, because a faster answer would reveal it. Each of n requests proceeds
 * with probability min(1, MAX_ADMITTED / n), so none can displace another. Other addresses never wait.
 *
 * Failure: an aborted request leaves its round. Beyond MAX_ADDRESSES, the least recently failed address is evicted.
 */
export class LoginThrottle {
  readonly #now: () => number;
  /** By client address, least recently failed first. */
  readonly #clients = new Map<string, Client>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Resolves when a secret from this address may be admitted.
   *
   * @param signal aborts when the client disconnects
   * @throws AppError `too_many_requests` if the round admitted others, or the client disconnected
   */
  async admit(address: string, signal?: AbortSignal): Promise<void> {
    const client = this.#clients.get(address);
    if (client === undefined) return;
    const now = this.#now();
    client.failedAt = client.failedAt.filter((time) => now - time < WINDOW_MS);
    if (client.failedAt.length < FREE_FAILURES) return;
    // an already aborted signal fires no event to leave the round
    const isAbandoned = () => signal?.aborted === true;
    if (!isAbandoned()) {
      const round = currentRound(client, now);
      const waiter = { rank: Math.random() };
      round.waiters.add(waiter);
      signal?.addEventListener('abort', () => round.waiters.delete(waiter));
      await pause(round.endsAt - now);
      round.admitted ??= new Set([...round.waiters].sort((a, b) => a.rank - b.rank).slice(0, MAX_ADMITTED));
      if (!isAbandoned() && round.admitted.has(waiter)) return;
    }
    throw new AppError('too_many_requests', 'Too many wrong tokens from your address. Try again in a second.', {
      headers: { 'retry-after': '1' },
    });
  }

  recordFailure(address: string): void {
    const client = this.#clients.get(address) ?? { failedAt: [], round: null };
    if (client.failedAt.length >= FREE_FAILURES) client.failedAt.shift();
    client.failedAt.push(this.#now());
    this.#clients.delete(address);
    this.#clients.set(address, client);
    const [oldest] = this.#clients.keys();
    if (this.#clients.size > MAX_ADDRESSES && oldest !== undefined) this.#clients.delete(oldest);
  }
}

/** Returns the round that is still collecting, or starts one. */
function currentRound(client: Client, now: number): Round {
  if (client.round === null || client.round.admitted !== null || client.round.endsAt <= now)
    client.round = { endsAt: now + ROUND_MS, waiters: new Set(), admitted: null };
  return client.round;
}
