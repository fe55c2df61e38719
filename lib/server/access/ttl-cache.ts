/** Caches the result of an expensive lookup for a while. Failures are not cached. */
export class TtlCache<T> {
  readonly #isShared: boolean;
  #loading: Promise<T> | null = null;
  #cached: { value: T; at: number; tookMs: number } | null = null;

  /**
   * @param isShared concurrent callers share a lookup; false on hosts where a lookup ends with the request that started
   * it
   */
  constructor(isShared = true) {
    this.#isShared = isShared;
  }

  /**
   * @param now milliseconds
   * @param ttlMs maximum age of a result; may differ between calls
   */
  async get(now: () => number, load: () => Promise<T>, ttlMs: (value: T, tookMs: number) => number): Promise<T> {
    if (this.#cached !== null) {
      const { value, at, tookMs } = this.#cached;
      const ageMs = now() - at;
      if (ageMs >= 0 && ageMs < ttlMs(value, tookMs)) return value;
    }
    if (this.#isShared && this.#loading !== null) return this.#loading;
    const startedAt = now();
    const loading = load().then((value) => {
      const at = now();
      this.#cached = { value, at, tookMs: at - startedAt };
      return value;
    });
    this.#loading = loading;
    return await loading.finally(() => {
      if (this.#loading === loading) this.#loading = null;
    });
  }
}
