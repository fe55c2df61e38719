import { withDeadline } from '@/lib/runner/with-deadline';

/**
 * What the agent owes, in memory, so that the end of a turn never waits for the server.
 *
 * Ordering: one request at a time; a call during one gets its result, except `markDirty`, which asks anew after it.
 * Failure: keeps what it had, and says so at debug. An answer that is no list is an empty list.
 */
export interface SnapshotOptions<Item> {
  /** Asks the server. Rejects when it can't be asked. */
  fetch: (signal: AbortSignal) => Promise<unknown>;
  /** Each item as it stands in the answer; null for one that can't be understood. */
  parse: (item: unknown) => Item | null;
  onError?: (message: string) => void;
  onChange?: (items: readonly Item[]) => void;
  everyMs?: number;
  dirtyMs?: number;
  timeoutMs?: number;
}

export class Snapshot<Item extends object> {
  readonly #options: SnapshotOptions<Item>;
  readonly #stopped = new AbortController();
  #items: readonly Item[] = [];
  #text = '[]';
  #running: Promise<void> | null = null;
  #every: NodeJS.Timeout | null = null;
  #dirty: NodeJS.Timeout | null = null;
  #refreshedAt: number | null = null;

  constructor(options: SnapshotOptions<Item>) {
    this.#options = options;
  }

  /** Primes it, and keeps it fresh until `stop`. */
  start(): void {
    if (this.#every || this.#stopped.signal.aborted) return;
    this.#every = setInterval(() => void this.refresh(), this.#options.everyMs ?? 10_000);
    this.#every.unref();
    void this.refresh();
  }

  /** A list of the caller's own; the items are frozen. Never throws, never waits. */
  get(): Item[] {
    return this.#items.slice();
  }

  /** Epoch milliseconds of the last answer; null before the first. */
  get refreshedAt(): number | null {
    return this.#refreshedAt;
  }

  /** Asks now, or joins the request that is under way. Never rejects. */
  refresh(): Promise<void> {
    this.#running ??= this.#ask().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Something may have changed. The first call arms; those within the wait are one with it. */
  markDirty(): void {
    if (this.#dirty || this.#stopped.signal.aborted) return;
    this.#dirty = setTimeout(async () => {
      this.#dirty = null;
      // What is under way may have been asked before the change.
      await this.#running;
      await this.refresh();
    }, this.#options.dirtyMs ?? 400);
    this.#dirty.unref();
  }

  stop(): void {
    this.#stopped.abort();
    if (this.#every) clearInterval(this.#every);
    if (this.#dirty) clearTimeout(this.#dirty);
  }

  async #ask(): Promise<void> {
    const { fetch, parse, onError, onChange, timeoutMs = 5_000 } = this.#options;
    if (this.#stopped.signal.aborted) return;
    try {
      const answer = await withDeadline(timeoutMs, this.#stopped.signal, fetch);
      const list = Array.isArray(answer) ? answer : [];
      const items = list.map(parse).filter((item) => item !== null);
      this.#refreshedAt = Date.now();
      const text = JSON.stringify(items);
      if (text === this.#text) return;
      this.#text = text;
      // The list itself is not frozen: copying one that is takes twenty times as long.
      this.#items = items.map((item) => Object.freeze(item));
      onChange?.(this.#items);
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      onError?.(`what is owed could not be asked, the last answer stands: ${messageOf(error)}`);
    }
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = (error.cause ?? {}) as { code?: string };
  return code ?? error.message;
}
