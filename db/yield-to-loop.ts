/**
 * Gives the event loop a turn. Small statements, and writes to streams with room, complete without one: a long
 * series would block every other request.
 */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

/** Milliseconds that work may block the event loop. */
const WORK_MS = 10;

/** Yields to the event loop during long work, every few milliseconds. In between, a call only reads the clock. */
export class Yielder {
  #startedAt = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#startedAt >= WORK_MS;
  }

  /** Yields if the work has blocked the event loop for long enough. */
  async yieldIfDue(): Promise<void> {
    if (this.isDue) await this.yieldNow();
  }

  /** Like `yieldIfDue`, but creates no promise unless it yields. */
  readonly maybeYield = (): Promise<void> | null => (this.isDue ? this.yieldIfDue() : null);

  async yieldNow(): Promise<void> {
    await yieldToLoop();
    this.#startedAt = performance.now();
  }

  /** `forEach` in order, yielding in between. */
  async each<T>(values: Iterable<T>, work: (value: T) => void): Promise<void> {
    for (const value of values) {
      work(value);
      if (this.isDue) await this.yieldIfDue();
    }
  }

  /** `map` in order, yielding in between. */
  async map<T, R>(values: readonly T[], change: (value: T, index: number) => R): Promise<R[]> {
    const changed: R[] = [];
    for (const [index, value] of values.entries()) {
      changed.push(change(value, index));
      if (this.isDue) await this.yieldIfDue();
    }
    return changed;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lets the process exit while the timer runs. */
export function unref(timer: unknown): void {
  if (typeof timer === 'object') (timer as { unref?: () => void }).unref?.();
}

/** A pause that does not keep the process alive. */
export function pauseUnref(ms: number): Promise<void> {
  return new Promise((resolve) => {
    unref(setTimeout(resolve, ms));
  });
}

/** Leaves two thirds of the time to other work, even on a slow machine. */
const PAUSE_RATIO = 2;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 40;

/** Runs a slice of background work, and pauses after it. */
export async function paced(slice: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  await slice();
  const pauseMs = (performance.now() - startedAt) * PAUSE_RATIO;
  await pause(Math.min(Math.max(pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
}
