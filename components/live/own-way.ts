import { askServer } from './ask-server';

/** An answer from this very machine or its network takes no longer. */
const ANSWER_WITHIN_MS = 3_000;

/**
 * Whether this page has a way to the server of its own, beside the connection that all pages share. A browser tells of
 * its network only whether there is one: a server on this machine is there without, and one behind a dead line is not.
 */
export class OwnWay {
  readonly #onChange: () => void;
  #lostAt: number | null = null;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    addEventListener('offline', () => void this.#look());
    addEventListener('online', () => this.#set(null));
  }

  /** Since when there is none; null while there is, as far as known. */
  get lostAt(): number | null {
    return this.#lostAt;
  }

  async #look(): Promise<void> {
    const at = Date.now();
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const isThere = await askServer('/healthz', { signal }).then(
      () => true,
      () => false,
    );
    // It may be back by now.
    if (!isThere && !navigator.onLine) this.#set(at);
  }

  #set(lostAt: number | null): void {
    if (lostAt === this.#lostAt) return;
    this.#lostAt = lostAt;
    this.#onChange();
  }
}
