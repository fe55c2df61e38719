/** A topic nobody reads any more stays on the stream this long: going back and forth costs no new connection. */
const LINGER_MS = 20_000;

/** The topics that nobody reads at the moment, until they are dropped. */
export class LingeringTopics {
  readonly #since = new Map<string, number>();
  readonly #now: () => number;
  readonly #drop: (topics: string[]) => void;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(now: () => number, drop: (topics: string[]) => void) {
    this.#now = now;
    this.#drop = drop;
  }

  add(topic: string): void {
    this.#since.set(topic, this.#now());
    this.#timer ??= setTimeout(() => this.#look(), LINGER_MS);
  }

  /** Somebody reads it again. */
  delete(topic: string): void {
    this.#since.delete(topic);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #look(): void {
    const limit = this.#now() - LINGER_MS;
    const over = [...this.#since].flatMap(([topic, since]) => (since > limit ? [] : [topic]));
    for (const topic of over) this.#since.delete(topic);
    this.#timer = this.#since.size > 0 ? setTimeout(() => this.#look(), LINGER_MS) : null;
    if (over.length > 0) this.#drop(over);
  }
}
