import { pause } from '@/db/next-turn';
import { AppError } from '@/lib/protocol/errors';

/** Wrong secrets of one address in a minute that slow nothing down. */
const FREE = 20;
const WINDOW_MS = 60_000;
/** 260 requests in flight from one address are compared within a second. */
const SPACING_MS = 3;
const MOST_WAITING = 300;
const MOST_LINES = 10_000;

/** The requests of one client address. */
interface Line {
  /** When the last wrong secrets came, the oldest first. */
  failedAt: number[];
  /** When the last request in the line has its turn. */
  lastTurnAt: number;
}

/**
 * Slows down guessing of secrets that a person chose. After FREE wrong ones in a minute from one client address, the
 * secrets that this address sends are compared one every SPACING_MS. The right one waits too, because an answer that
 * comes sooner would reveal it. Other addresses wait for nothing.
 *
 * Failure: each request waits by a timer of its own, so that an abandoned request holds up no other. With more than
 * MOST_LINES addresses, the one that failed least recently is forgotten.
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
   * @throws AppError `too_many_requests` when too many wait already
   */
  async turn(address: string): Promise<void> {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    const now = this.#now();
    line.failedAt = line.failedAt.filter((time) => now - time < WINDOW_MS);
    if (line.failedAt.length < FREE) return;
    const turnAt = Math.max(now, line.lastTurnAt) + SPACING_MS;
    if (turnAt - now > MOST_WAITING * SPACING_MS) {
      throw new AppError('too_many_requests', 'Too many wrong tokens from your address. Try again in 10 seconds.', {
        headers: { 'retry-after': '10' },
      });
    }
    line.lastTurnAt = turnAt;
    await pause(turnAt - now);
  }

  /** Records a wrong secret from this address. */
  failed(address: string): void {
    const line = this.#lines.get(address) ?? { failedAt: [], lastTurnAt: Number.NEGATIVE_INFINITY };
    if (line.failedAt.length >= FREE) line.failedAt.shift();
    line.failedAt.push(this.#now());
    this.#lines.delete(address);
    this.#lines.set(address, line);
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > MOST_LINES && oldest !== undefined) this.#lines.delete(oldest);
  }
}
