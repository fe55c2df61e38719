/** Less is what clocks drift, and what a busy process is late by. */
const STEP_MS = 5_000;

/**
 * Tells when the wall clock is moved under a process: it is held against one that only ever goes on. A machine that
 * slept looks the same, where the steady clock stood still with it.
 */
export class ClockWatch {
  readonly #now: () => number;
  readonly #steady: () => number;
  #wallAt: number;
  #steadyAt: number;

  /** @param steady milliseconds since any beginning; nothing moves it */
  constructor(now: () => number, steady: () => number = () => performance.now()) {
    this.#now = now;
    this.#steady = steady;
    this.#wallAt = now();
    this.#steadyAt = steady();
  }

  /** @returns how far the clock was moved since the last look, ahead or back, in milliseconds; 0 when it was not */
  step(): number {
    const [wall, steady] = [this.#now(), this.#steady()];
    const moved = wall - this.#wallAt - (steady - this.#steadyAt);
    this.#wallAt = wall;
    this.#steadyAt = steady;
    return Math.abs(moved) >= STEP_MS ? moved : 0;
  }
}
