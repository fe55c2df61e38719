/**
 * When the runner says how it is: every ten seconds, and soon after something changed.
 *
 * Ordering: one report at a time; what changes during one is in the next.
 * Failure: while the server is away nothing is stored: a day's outage must not leave a day of reports, each of them
 * outdated by the next. What has changed is told once it gets through again, and at the end in any case.
 */
export interface StatusReporterOptions {
  report: () => Promise<void>;
  /** Whether the last report is on its way still, because nothing gets through. */
  isHeldUp: () => boolean;
  everyMs?: number;
  soonMs?: number;
  heldMs?: number;
}

/** Said in each report, so that the server knows by when to miss the next. */
export const REPORT_EVERY_MS = 10_000;
/** Changes come in groups. */
const SOON_MS = 100;
/** How often it is looked whether anything gets through again. */
const HELD_MS = 500;

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
    this.#every = setInterval(() => {
      if (!this.#options.isHeldUp()) void this.now();
    }, this.#options.everyMs ?? REPORT_EVERY_MS);
  }

  changed(): void {
    if (this.#soon === null && !this.#stopped) this.#tellIn(this.#options.soonMs ?? SOON_MS);
  }

  #tellIn(ms: number): void {
    this.#soon = setTimeout(() => {
      if (this.#options.isHeldUp()) return this.#tellIn(this.#options.heldMs ?? HELD_MS);
      this.#soon = null;
      void this.now();
    }, ms);
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

  /** Says it one last time. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#every) clearInterval(this.#every);
    if (this.#soon) clearTimeout(this.#soon);
    await this.now();
  }
}
