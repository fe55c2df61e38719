/**
 * What takes long to look up, kept for whoever asks next. Nobody asks for less than a while ago.
 *
 * Failure: a look that fails is not kept.
 */
export class TtlCache<T> {
  readonly #isShared: boolean;
  #looking: Promise<T> | null = null;
  #kept: { value: T; until: number } | null = null;

  /**
   * @param isShared whether those who ask meanwhile wait for the same look. Where a request ends with all that it has
   * begun, none may wait for what another one does.
   */
  constructor(isShared = true) {
    this.#isShared = isShared;
  }

  /**
   * @param now in milliseconds
   * @param keptMs how long an answer is good for, by itself and by how long it took
   */
  async get(now: () => number, look: () => Promise<T>, keptMs: (value: T, tookMs: number) => number): Promise<T> {
    if (this.#kept !== null && now() < this.#kept.until) return this.#kept.value;
    if (this.#isShared && this.#looking !== null) return this.#looking;
    const begunAt = now();
    const looking = look().then((value) => {
      const endedAt = now();
      this.#kept = { value, until: endedAt + keptMs(value, endedAt - begunAt) };
      return value;
    });
    this.#looking = looking;
    return await looking.finally(() => {
      if (this.#looking === looking) this.#looking = null;
    });
  }
}
