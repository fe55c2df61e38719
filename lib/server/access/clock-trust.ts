import type { Database } from '@/db/client';

/** How long a clock must have run undisturbed before anything is removed by it. */
const SETTLED_MS = 10 * 60_000;
/** How far it may be from the newest record. */
const NEAR_MS = 24 * 60 * 60_000;
/** A clock further from it than that is trusted after this long: a server that was idle for weeks has old records. */
const PROVEN_MS = 24 * 60 * 60_000;

/**
 * Whether the wall clock can be trusted to remove what can't be restored. A clock that is weeks ahead for a minute
 * makes every line of a log too old.
 *
 * A span begins at the start and whenever the clock is moved. It is measured on a steady clock, and judged by the
 * newest record from before it: what came since has the same wrong time.
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

  /** @param newestAt when the newest record was received; null when there is none */
  look(newestAt: number | null): boolean {
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

/** When the newest record of all was received, by the clock of then. */
export async function newestReceivedAt(reader: Database['reader']): Promise<number | null> {
  const { rows } = await reader.execute('SELECT max(last_seen_at) AS at FROM producers');
  const at = rows[0]?.at ?? null;
  return at === null ? null : Number(at);
}

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
