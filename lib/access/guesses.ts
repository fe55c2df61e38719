import { pause } from '@/db/next-turn';
import { AppError } from '@/lib/protocol/errors';

const FREE = 20;
const WINDOW_MS = 60_000;
const WAIT_MS = 250;
const MOST_WAITING = 40;

/**
 * Slows down whoever tries out secrets that a person chose. What is right never waits, so that a stranger's guessing
 * locks nobody out; what is wrong is answered one by one, four a second, once there have been many in a minute.
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
   * A guess was wrong. Resolves when that may be said.
   * @throws AppError `too_many_requests` when too many wait for their answer already
   */
  async wrong(): Promise<void> {
    const now = this.#now();
    this.#times = this.#times.filter((time) => now - time < WINDOW_MS);
    this.#times.push(now);
    if (this.#times.length <= FREE) return;
    this.#times.splice(0, this.#times.length - FREE - 1);
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
}
