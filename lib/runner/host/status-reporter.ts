/**
 * Sends the runner's status every ten seconds, and soon after a change.
 *
 * Ordering: one report at a time; what changes during one is in the next.
 * Failure: while the server is away it goes on; in the outbox each report takes the place of the one before it, so that
 * what gets through then is as new as it can be.
 */
export interface StatusReporterOptions {
  report: () => Promise<void>;
  everyMs?: number;
  soonMs?: number;
}

/** In each report, so that the server knows when to miss the next. */
export const REPORT_EVERY_MS = 10_000;
/** Changes come in bursts. */
const SOON_MS = 100;

export class StatusReporter {
  readonly #options: StatusReporterOptions;
  #every: NodeJS.Timeout | null = null;
  #soon: NodeJS.Timeout | null = null;
  #reporting: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;
  #stopped = false;

  constructor(options: StatusReporterOptions) {
    this.#options = options;
  }

  /** Resolves when the first report is stored. */
  async start(): Promise<void> {
    await this.now();
    this.#every = setInterval(() => void this.now(), this.#options.everyMs ?? REPORT_EVERY_MS);
  }

  changed(): void {
    if (this.#soon !== null || this.#stopped) return;
    this.#soon = setTimeout(() => {
      this.#soon = null;
      void this.now();
    }, this.#options.soonMs ?? SOON_MS);
  }

  /** Joins the report that waits for the one under way, if one does. */
  now(): Promise<void> {
    this.#next ??= this.#reporting.then(() => {
      this.#next = null;
      this.#reporting = this.#options.report().catch(() => undefined);
      return this.#reporting;
    });
    return this.#next;
  }

  /** Reports one last time. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#every) clearInterval(this.#every);
    if (this.#soon) clearTimeout(this.#soon);
    await this.now();
  }
}
