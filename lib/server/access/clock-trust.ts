import type { Database } from '@/db/client';

/** Time without a clock step before the clock is trusted. */
const SETTLED_MS = 10 * 60_000;
/** Accepted difference from the newest record's time. */
const NEAR_MS = 24 * 60 * 60_000;
/**
 * Time without a step after which a clock is trusted even if it differs by more than NEAR_MS: an idle server only has
 * old records.
 */
const PROVEN_MS = 24 * 60 * 60_000;

/**
 * Decides whether the wall clock is reliable enough to delete data. A clock set weeks ahead for a minute makes every
 * log line look expired.
 *
 * Measures time since start or since the last clock step on a monotonic clock. Compares the wall clock with the newest
 * record from before that step, because later records share the clock's error.
 */
export class ClockTrust {
  readonly #now: () => number;
  readonly #steady: () => number;
  readonly #watch: ClockWatch;
  #since: number | null = null;
  #isNear = false;
  #newestAt: number | null = null;

  constructor(now: () => number, steady: () => number = () => performance.now()) {
    this.#now = now;
    this.#steady = steady;
    this.#watch = new ClockWatch(now, steady);
  }

  /** @param newestAt time at which the newest record was received; null for none */
  isTrusted(newestAt: number | null): boolean {
    const hasMoved = this.#watch.step() !== 0;
    if (this.#since === null || hasMoved) {
      const before = this.#since === null ? newestAt : this.#newestAt;
      this.#isNear = before === null || Math.abs(this.#now() - before) <= NEAR_MS;
      this.#since = this.#steady();
    }
    this.#newestAt = newestAt;
    return this.#steady() - this.#since >= (this.#isNear ? SETTLED_MS : PROVEN_MS);
  }
}

/** Time at which the newest record was received, in epoch milliseconds; null for none. */
export async function newestReceivedAt(reader: Database['reader']): Promise<number | null> {
  const { rows } = await reader.execute('SELECT max(last_seen_at) AS at FROM producers');
  const at = rows[0]?.at ?? null;
  return at === null ? null : Number(at);
}

/** Smaller differences are clock drift or event-loop delay. */
const STEP_MS = 5_000;

/**
 * Detects steps of the wall clock against a monotonic clock. Suspending a machine looks like a step if its monotonic
 * clock stops meanwhile.
 */
export class ClockWatch {
  readonly #now: () => number;
  readonly #steady: () => number;
  #wallAt: number;
  #steadyAt: number;

  constructor(now: () => number, steady: () => number = () => performance.now()) {
    this.#now = now;
    this.#steady = steady;
    this.#wallAt = now();
    this.#steadyAt = steady();
  }

  /** @returns milliseconds by which the clock was stepped since the last call, forwards or backwards; 0 for none */
  step(): number {
    const [wall, steady] = [this.#now(), this.#steady()];
    const moved = wall - this.#wallAt - (steady - this.#steadyAt);
    this.#wallAt = wall;
    this.#steadyAt = steady;
    return Math.abs(moved) >= STEP_MS ? moved : 0;
  }
}
