/**
 * Gives the event loop a turn. Small statements are answered without one and so are writes to streams with room: a loop
 * over many would otherwise hold up every other request until its end.
 */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

/** How long work may hold the event loop before it gives others a turn. */
const WORK_MS = 10;

/**
 * Paces work that may be large, so that other requests are answered between its pieces. Each piece may take a few
 * milliseconds; a call that gives no turn costs one look at the clock.
 */
export class Yielder {
  #begunAt = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#begunAt >= WORK_MS;
  }

  /** Gives the loop a turn when it is time to. */
  async rest(): Promise<void> {
    if (this.isDue) await this.turn();
  }

  /** A turn if one is due, else null: costs no promise. */
  readonly restIfDue = (): Promise<void> | null => (this.isDue ? this.rest() : null);

  /** Gives the loop a turn in any case. */
  async turn(): Promise<void> {
    await yieldToLoop();
    this.#begunAt = performance.now();
  }

  /** Does this with many values, in order, giving others their turns in between. */
  async each<T>(values: Iterable<T>, work: (value: T) => void): Promise<void> {
    for (const value of values) {
      work(value);
      if (this.isDue) await this.rest();
    }
  }

  /** `map` for many values, in order, giving others their turns in between. */
  async map<T, R>(values: readonly T[], change: (value: T, index: number) => R): Promise<R[]> {
    const changed: R[] = [];
    for (const [index, value] of values.entries()) {
      changed.push(change(value, index));
      if (this.isDue) await this.rest();
    }
    return changed;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A pause that does not keep the process alive. */
export function pauseUnref(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = setTimeout(resolve, ms);
    if (typeof timer === 'object') (timer as { unref?: () => void }).unref?.();
  });
}

/** Others get two thirds of the time, and on a slow machine what is done still keeps up. */
const PAUSE_RATIO = 2;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 40;

/** A slice of work that nobody waits for, and a pause after it. */
export async function paced(slice: () => Promise<void>): Promise<void> {
  const beganAt = performance.now();
  await slice();
  const pauseMs = (performance.now() - beganAt) * PAUSE_RATIO;
  await pause(Math.min(Math.max(pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS));
}
