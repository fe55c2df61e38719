import { pause } from '@/db/next-turn';
import { AppError } from '@/lib/protocol/errors';

const FREE = 20;
const WINDOW_MS = 60_000;
const WAIT_MS = 20;
const MOST_WAITING = 200;

/**
 * Slows down whoever tries out secrets that a person chose. Once there were many wrong ones in a minute, every secret of
 * that kind waits for its turn before it is compared, fifty a second: the right one, too, because an answer that
 * comes sooner would tell it.
 *
 * Failure: each waits by a timer of its own, so that nobody's turn depends on a request that was given up.
 */
export class Guesses {
  readonly #now: () => number;
  #times: number[] = [];
  /** When the last in the line has its turn. */
  #lastTurnAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Resolves when a secret may be compared.
   * @throws AppError `too_many_requests` when too many wait already
   */
  async turn(): Promise<void> {
    const now = this.#now();
    this.#times = this.#times.filter((time) => now - time < WINDOW_MS);
    if (this.#times.length < FREE) return;
    const turnAt = Math.max(now, this.#lastTurnAt) + WAIT_MS;
    if (turnAt - now > MOST_WAITING * WAIT_MS) {
      throw new AppError('too_many_requests', 'Too many wrong tokens were sent lately. Try again in a while.', {
        headers: { 'retry-after': '10' },
      });
    }
    this.#lastTurnAt = turnAt;
    await pause(turnAt - now);
  }

  /** One was wrong. */
  wrong(): void {
    if (this.#times.length >= FREE) this.#times.shift();
    this.#times.push(this.#now());
  }
}
