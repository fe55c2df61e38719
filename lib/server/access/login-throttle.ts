import { AppError } from '@interlude/protocol/errors';
import { pause } from '@/db/yield-to-loop';

/** Wrong secrets of one address in a minute that slow nothing down. */
const FREE = 20;
const WINDOW_MS = 60_000;
/** Milliseconds for which the requests of an address gather. */
const ROUND_MS = 600;
/** Requests compared per round. 260 in flight from one address are all answered within a second. */
const MOST_COMPARED = 300;
const MOST_LINES = 10_000;

/** A request that waits for the end of its round; the place is random. */
interface Ticket {
  place: number;
}

/** Requests that gather until `endsAt`. Plain data: on some hosts no request may wake another one. */
interface Round {
  endsAt: number;
  tickets: Set<Ticket>;
  /** Null until the first request of the round wakes. */
  compared: ReadonlySet<Ticket> | null;
}

/** The requests of one client address. */
interface Line {
  /** When the last wrong secrets came, the oldest first. */
  failedAt: number[];
  /** The latest round; null before the first. */
  round: Round | null;
}

/**
 * Slows down guessing of secrets that a person chose. After FREE wrong ones in a minute from one client address, the
 * requests of this address gather in rounds of ROUND_MS. At the end, MOST_COMPARED of them go on, chosen at random, and
 * the others are refused. The right secret waits as well, because a faster answer would reveal it. Each of n requests in a
 * round is compared with a probability of min(1, MOST_COMPARED / n), so that no request can displace another. Other
 * addresses never wait.
 *
 * Failure: an abandoned request leaves its round. With more than MOST_LINES addresses, the one that failed least recently
 * is forgotten.
 */
export class LoginThrottle {
  readonly #now: () => number;
  /** By client address, the one that failed least recently first. */
  readonly #lines = new Map<string, Line>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Resolves when a secret from this address may be compared.
   *
   * @param signal aborts when the client is gone
   * @throws AppError `too_many_requests` if others of the same round are compared instead, or the client is gone
   */
  async turn(address: string, signal?: AbortSignal): Promise<void> {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    const now = this.#now();
    line.failedAt = line.failedAt.filter((time) => now - time < WINDOW_MS);
    if (line.failedAt.length < FREE) return;
    // An aborted signal fires no event, by which the request would leave its round.
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

  /** Records a wrong secret from this address. */
  failed(address: string): void {
    const line = this.#lines.get(address) ?? { failedAt: [], round: null };
    if (line.failedAt.length >= FREE) line.failedAt.shift();
    line.failedAt.push(this.#now());
    this.#lines.delete(address);
    this.#lines.set(address, line);
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > MOST_LINES && oldest !== undefined) this.#lines.delete(oldest);
  }
}

/** The round that gathers now. */
function roundOf(line: Line, now: number): Round {
  if (line.round === null || line.round.compared !== null || line.round.endsAt <= now)
    line.round = { endsAt: now + ROUND_MS, tickets: new Set(), compared: null };
  return line.round;
}
