/** State with change listeners. */
export abstract class Store {
  readonly #listeners = new Set<() => void>();
  #isScheduled = false;

  /** @returns a function that unsubscribes */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Notifies once per microtask, because a rendering component may cause the change. */
  protected changed(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.changedNow();
    });
  }

  /** Notifies immediately, for text fields: React restores their value after the event. */
  protected changedNow(): void {
    for (const listener of this.#listeners) listener();
  }
}
