const STEP_MS = 500;
const LONGEST_MS = 10_000;
const RAPID_EXITS = 5;
const RAPID_WITHIN_MS = 60_000;

export type RestartDecision =
  | { kind: 'restart'; waitMs: number }
  | { kind: 'give-up'; exits: number; withinMs: number };

/** Decides when to restart a crashed agent, and when to give up. */
export class RestartPolicy {
  /** Exit times of the current series. A process that lives for a minute ends the series. */
  #exits: number[] = [];

  /** @returns a wait of 500 ms per exit in the series, up to 10 s; gives up after five exits within a minute */
  exited(startedAt: number, now: number): RestartDecision {
    if (now - startedAt >= RAPID_WITHIN_MS) this.#exits = [];
    this.#exits.push(now);
    const rapid = this.#exits.filter((at) => now - at < RAPID_WITHIN_MS).length;
    if (rapid >= RAPID_EXITS) return { kind: 'give-up', exits: rapid, withinMs: RAPID_WITHIN_MS };
    return { kind: 'restart', waitMs: Math.min(STEP_MS * this.#exits.length, LONGEST_MS) };
  }
}

/** Lets a closing runner wait until its agent is idle. */
export class DrainWait {
  #resolve = () => {};

  /** Resolves when `end` is called or after `deadlineMs`. */
  within(deadlineMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#resolve = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  end(): void {
    this.#resolve();
  }
}
