/** State that components read: they hear of every change, and ask for what they show. */
export abstract class Store {
  readonly #listeners = new Set<() => void>();
  #isToBeTold = false;

  /** @returns unsubscribe */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Told once for all that one piece of code changes, and after it: it may be a component that renders. */
  protected changed(): void {
    if (this.#isToBeTold) return;
    this.#isToBeTold = true;
    queueMicrotask(() => {
      this.#isToBeTold = false;
      this.changedNow();
    });
  }

  /** Told at once, for what is typed: a field is given back its text before its event is over. */
  protected changedNow(): void {
    for (const listener of this.#listeners) listener();
  }
}
