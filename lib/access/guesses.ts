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
 */
export class Guesses {
  readonly #now: () => number;
  #times: number[] = [];
  #line: Promise<void> = Promise.resolve();
  #waiting = 0;

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
    if (this.#waiting >= MOST_WAITING) {
      throw new AppError('too_many_requests', 'Too many wrong tokens were sent lately. Try again in a while.', {
        headers: { 'retry-after': '10' },
      });
    }
    this.#waiting += 1;
    this.#line = this.#line.then(() => pause(WAIT_MS));
    await this.#line;
    this.#waiting -= 1;
  }

  /** One was wrong. */
  wrong(): void {
    if (this.#times.length >= FREE) this.#times.shift();
    this.#times.push(this.#now());
  }
}
