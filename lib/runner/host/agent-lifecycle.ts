/** How long to wait before a crashed agent is started again, and when to give up. */

const STEP_MS = 500;
const LONGEST_MS = 10_000;
const RAPID_EXITS = 5;
const RAPID_WITHIN_MS = 60_000;

export type RestartDecision =
  | { kind: 'restart'; waitMs: number }
  | { kind: 'give-up'; exits: number; withinMs: number };

export class RestartPolicy {
  /** When each process of the current series ended. */
  #exits: number[] = [];

  /**
   * @param startedAt when the process that is gone now was started
   * @returns a wait of clamp(500·n, 500, 10000) ms for the n-th exit in a series; a process that lived for a minute
   *   ends the series, five exits within a minute are too many
   */
  exited(startedAt: number, now: number): RestartDecision {
    if (now - startedAt >= RAPID_WITHIN_MS) this.#exits = [];
    this.#exits.push(now);
    const rapid = this.#exits.filter((at) => now - at < RAPID_WITHIN_MS).length;
    if (rapid >= RAPID_EXITS) return { kind: 'give-up', exits: rapid, withinMs: RAPID_WITHIN_MS };
    return { kind: 'restart', waitMs: Math.min(Math.max(STEP_MS * this.#exits.length, STEP_MS), LONGEST_MS) };
  }
}

/** The wait of a runner that ends, until its agent has nothing more to do. */
export class DrainWait {
  #over = () => {};

  /** Resolves with `over`, or once the time has passed. */
  within(deadlineMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#over = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The agent is quiet, or nobody waits for that any more. */
  over(): void {
    this.#over();
  }
}
