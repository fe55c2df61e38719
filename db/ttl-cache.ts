/**
 * Caches the result of an expensive lookup for a while. Failures are not cached.
 */
export class TtlCache<T> {
  readonly #isShared: boolean;
  #loading: Promise<T> | null = null;
  #cached: { value: T; until: number } | null = null;

  /** @param isShared concurrent callers share a lookup; not on hosts that end it with the request that started it */
  constructor(isShared = true) {
    this.#isShared = isShared;
  }

  /**
   * @param now milliseconds
   * @param ttlMs how long a result is valid
   */
  async get(now: () => number, load: () => Promise<T>, ttlMs: (value: T, tookMs: number) => number): Promise<T> {
    if (this.#cached !== null && now() < this.#cached.until) return this.#cached.value;
    if (this.#isShared && this.#loading !== null) return this.#loading;
    const startedAt = now();
    const loading = load().then((value) => {
      const endedAt = now();
      this.#cached = { value, until: endedAt + ttlMs(value, endedAt - startedAt) };
      return value;
    });
    this.#loading = loading;
    return await loading.finally(() => {
      if (this.#loading === loading) this.#loading = null;
    });
  }
}
