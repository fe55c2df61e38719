/** Smaller differences are drift, or a busy process that looks late. */
const STEP_MS = 5_000;

/**
 * Tells when the wall clock is moved while the process runs, by comparing it with a steady clock. A machine that slept
 * looks the same if its steady clock stood still meanwhile.
 */
export class ClockWatch {
  readonly #now: () => number;
  readonly #steady: () => number;
  #wallAt: number;
  #steadyAt: number;

  /** @param steady milliseconds since some start; nothing moves it */
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
