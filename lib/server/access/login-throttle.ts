import { AppError } from '@interlude/protocol/errors';
import { pause } from '@/db/next-turn';

/** Wrong secrets per address and minute before throttling starts. */
const FREE = 20;
const WINDOW_MS = 60_000;
/** Milliseconds for which an address's requests are collected. */
const ROUND_MS = 600;
/** Requests admitted per round. 260 concurrent requests from one address are all answered within a second. */
const MOST_COMPARED = 300;
const MOST_LINES = 10_000;

/** A request waiting for its round to end, ranked at random. */
interface Ticket {
  place: number;
}

/** Requests collected until `endsAt`. Plain data: on some hosts no request may wake another one. */
interface Round {
  endsAt: number;
  tickets: Set<Ticket>;
  /** Null until the first request of the round wakes. */
  compared: ReadonlySet<Ticket> | null;
}

interface Line {
  /** Times of the latest wrong secrets, oldest first. */
  failedAt: number[];
  round: Round | null;
}

/**
 * Throttles guesses of human-chosen secrets. After FREE_FAILURES wrong ones from an address within a minute, its
 * requests are collected in rounds of ROUND_MS. At the end of a round MAX_ADMITTED random requests proceed and the rest
 * are refused. The right secret waits too, because a faster answer would reveal it. Each of n requests proceeds with
 * probability min(1, MAX_ADMITTED / n), so that none can displace another. Other addresses never wait.
 *
 * Failure: an aborted request leaves its round. Beyond MAX_ADDRESSES, the least recently failed address is evicted.
 */
export class LoginThrottle {
  readonly #now: () => number;
  /** By client address, least recently failed first. */
  readonly #lines = new Map<string, Line>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Resolves when a secret from this address may be compared.
   *
   * @param signal aborts when the client disconnects
   * @throws AppError `too_many_requests` if the round admitted others, or the client disconnected
   */
  async admit(address: string, signal?: AbortSignal): Promise<void> {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    const now = this.#now();
    line.failedAt = line.failedAt.filter((time) => now - time < WINDOW_MS);
    if (line.failedAt.length < FREE) return;
    // an already aborted signal fires no event to leave the round
    const isAbandoned = () => signal?.aborted === true;
    if (!isAbandoned()) {
      const round = roundOf(line, now);
      const ticket = { place: Math.random() };
      round.tickets.add(ticket);
      signal?.addEventListener('abort', () => round.tickets.delete(ticket));
      await pause(round.endsAt - now);
      round.compared ??= new Set([...round.tickets].sort((a, b) => a.place - b.place).slice(0, MOST_COMPARED));
      if (!isAbandoned() && round.compared.has(ticket)) return;
    }
    throw new AppError('too_many_requests', 'Too many wrong tokens from your address. Try again in a second.', {
      headers: { 'retry-after': '1' },
    });
  }

  recordFailure(address: string): void {
    const line = this.#lines.get(address) ?? { failedAt: [], round: null };
    if (line.failedAt.length >= FREE) line.failedAt.shift();
    line.failedAt.push(this.#now());
    this.#lines.delete(address);
    this.#lines.set(address, line);
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > MOST_LINES && oldest !== undefined) this.#lines.delete(oldest);
  }
}

/** Returns the round that is still collecting, or starts one. */
function roundOf(line: Line, now: number): Round {
  if (line.round === null || line.round.compared !== null || line.round.endsAt <= now)
    line.round = { endsAt: now + ROUND_MS, tickets: new Set(), compared: null };
  return line.round;
}
