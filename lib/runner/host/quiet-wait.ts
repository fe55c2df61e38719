/** The wait of a runner that ends, until its agent has nothing more to do. */
export class QuietWait {
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
