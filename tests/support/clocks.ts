import type { OutboxClock } from '@interlude/runner/outbox/delivery';

/**
 * A clock without real waits. Each timer fires in the next turn of the event loop and advances the clock to its due
 * time. `waits` lists the requested delays.
 */
export class InstantClock implements OutboxClock {
  readonly waits: number[] = [];
  #now: number;

  constructor(now = 1_795_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now++;
  }

  random(): number {
    return 0.5;
  }

  after(ms: number, run: () => void): () => void {
    this.waits.push(ms);
    const timer = setImmediate(() => {
      this.#now += ms;
      run();
    });
    return () => clearImmediate(timer);
  }
}

/** A clock whose timers fire only on `fire()`. */
export class ManualClock implements OutboxClock {
  readonly armed: { ms: number; run: () => void }[] = [];
  time = 1_795_000_000_000;

  now(): number {
    return this.time;
  }

  random(): number {
    return 0.5;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { ms, run };
    this.armed.push(timer);
    return () => {
      const index = this.armed.indexOf(timer);
      if (index >= 0) this.armed.splice(index, 1);
    };
  }

  /** Fires the armed timer. */
  fire(): void {
    const timer = this.armed.shift();
    if (!timer) throw new Error('no timer is armed');
    this.time += timer.ms;
    timer.run();
  }
}

/**
 * A server's wall clock and monotonic clock under test control. `goesBy` advances both; `isMoved` changes only the wall
 * clock.
 */
export class AdjustableClocks {
  #wall = 1_795_170_000_000;
  #steady = 0;

  readonly now = () => this.#wall;
  readonly steady = () => this.#steady;

  goesBy(ms: number): void {
    this.#wall += ms;
    this.#steady += ms;
  }

  isMoved(ms: number): void {
    this.#wall += ms;
  }
}
