import { forLog } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { Database } from '@/db/client';
import { pause, yieldToLoop } from '@/db/yield-to-loop';
import { type RowLimits, type RowPage, readAfter, type TopicFilter } from '@/lib/server/event-log/read-after';

/** Twice the time it takes to write a chunk to one connection, in milliseconds. */
const PACE_MS_PER_CHUNK = 0.012;
const MAX_PAUSE_MS = 60;

/**
 * `completeTo`: position up to which every row was read before retention removed it. @returns the number of receivers
 */
type Publish = (page: RowPage, from: number, completeTo: number) => Promise<number>;

/**
 * Follows the newest rows for all readers of this process. This process's commits wake it immediately; the database
 * reports those of others.
 *
 * Ordering: `publish` gets adjoining ranges (from, upTo], in order and one at a time.
 * Failure: a failed read leaves the position unchanged. The next wake-up or poll reads the same range again.
 */
export class Tailer {
  readonly #database: Database;
  readonly #limits: RowLimits;
  readonly #pollMs: number;
  readonly #filter: () => TopicFilter;
  readonly #publish: Publish;
  #position = 0;
  /**
   * The last position at which nothing was left to read. Rows after it may have been removed before the tailer read
   * them.
   */
  #completeTo = 0;
  #chunkCount = 0;
  #isAwake = false;
  #failing = false;
  #loop: Promise<void> | null = null;
  #reading: Promise<unknown> | null = null;
  #stop: (() => void) | null = null;

  constructor(options: {
    database: Database;
    limits: RowLimits;
    pollMs: number;
    filter: () => TopicFilter;
    publish: Publish;
  }) {
    this.#database = options.database;
    this.#limits = options.limits;
    this.#pollMs = options.pollMs;
    this.#filter = options.filter;
    this.#publish = options.publish;
  }

  /** Rows up to this position were published, or existed before the first reader. */
  get position(): number {
    return this.#position;
  }

  get isRunning(): boolean {
    return this.#stop !== null;
  }

  /** Starts after `position`, unless it is running. */
  start(position: number): void {
    if (this.#stop !== null) return;
    this.#position = position;
    this.#completeTo = position;
    const unlisten = this.#database.onCommit(() => this.#wake());
    const unfollow = this.#database.follow(() => this.#wake(), this.#pollMs);
    this.#stop = () => {
      unlisten();
      unfollow();
    };
    this.#wake();
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
  }

  /** Resolves once no read is running. The next read uses the current filter. */
  async idle(): Promise<void> {
    while (this.#reading !== null) await this.#reading;
  }

  #wake(): void {
    this.#isAwake = true;
    this.#loop ??= this.#run().finally(() => {
      this.#loop = null;
      // A commit may arrive between the loop's last read and its end.
      if (this.#isAwake && this.isRunning) this.#wake();
    });
  }

  async #run(): Promise<void> {
    while (this.#isAwake && this.isRunning) {
      this.#isAwake = false;
      const startedAt = performance.now();
      this.#reading = this.#tick();
      await this.#reading;
      this.#reading = null;
      await yieldToLoop();
      await pauseAfter(this.#chunkCount, performance.now() - startedAt);
    }
  }

  /** Never throws. */
  async #tick(): Promise<void> {
    this.#chunkCount = 0;
    const stop = this.#stop;
    try {
      const page = await readAfter(this.#database, this.#filter(), this.#position, 'tail', this.#limits);
      // The tailer was stopped, and perhaps restarted elsewhere, during the read.
      if (stop === null || stop !== this.#stop) return;
      const [from, completeTo] = [this.#position, this.#completeTo];
      this.#position = page.upTo;
      if (page.complete) this.#completeTo = page.upTo;
      else this.#isAwake = true;
      this.#failing = false;
      if (page.rows.length > 0 || page.removedUpTo > completeTo)
        this.#chunkCount = await this.#publish(page, from, completeTo);
    } catch (error) {
      if (stop !== this.#stop) return;
      // Damage has already been logged.
      const isLogged = this.#failing || this.#database.damage.code !== null;
      if (!isLogged) serverLog('error', 'live updates are delayed:', { error: forLog(error) });
      this.#failing = true;
    }
  }
}

/**
 * A tick after a quiet moment is sent immediately. After that, at most about half of the time goes to ticks: with many
 * readers, or on a slow machine, ticks grow larger instead of starving ingest.
 */
async function pauseAfter(chunkCount: number, tookMs: number): Promise<void> {
  const paceMs = chunkCount * PACE_MS_PER_CHUNK;
  // `tookMs` includes time on disk, which does not slow down other work.
  const pauseMs = Math.min(Math.max(paceMs - tookMs, Math.min(tookMs, 2 * paceMs)), MAX_PAUSE_MS);
  if (pauseMs >= 1) await pause(pauseMs);
}
