import type { OutboxClock } from '@interlude/runner/outbox/delivery';

/**
 * A clock on which no wait takes time: each timer fires at the next turn of the event loop, and the clock then stands
 * where the wait would have ended. `waits` says how long each would have been.
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

/** A clock whose timers fire only when the test says so. */
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
      const at = this.armed.indexOf(timer);
      if (at >= 0) this.armed.splice(at, 1);
    };
  }

  /** Lets the timer that is armed run off. */
  fire(): void {
    const timer = this.armed.shift();
    if (!timer) throw new Error('no timer is armed');
    this.time += timer.ms;
    timer.run();
  }
}

/** A server's two clocks, in a test's hand: time goes by on both, and the one on the wall can be moved. */
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
