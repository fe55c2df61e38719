import { inShort } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { Database } from '@/db/client';
import { pause, yieldToLoop } from '@/db/yield-to-loop';
import type { RowLimits } from '@/lib/server/event-log/read-after';
import { type RowPage, readAfter, type TopicFilter } from '@/lib/server/event-log/read-after';

/** Twice what writing a chunk to one subscriber's connection costs, in milliseconds. */
const PACE_MS_PER_CHUNK = 0.012;
const MAX_PAUSE_MS = 60;

/**
 * Follows the newest rows for everybody in this process: woken by this process's commits at once, and by what the
 * database tells of those of others.
 *
 * Ordering: `publish` gets adjoining ranges (from, upTo] in order, one at a time.
 * Failure: a read that fails leaves the position where it is; the next wake or poll reads the same range again.
 */
export class Tailer {
  readonly #database: Database;
  readonly #limits: RowLimits;
  readonly #pollMs: number;
  readonly #wanted: () => TopicFilter;
  readonly #publish: (page: RowPage, from: number, whole: number) => Promise<number>;
  #position = 0;
  /** Where it had everything there was: what was removed behind it since, it may have missed. */
  #whole = 0;
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
    wanted: () => TopicFilter;
    /** @returns to how many subscribers it gave a chunk */
    publish: (page: RowPage, from: number, whole: number) => Promise<number>;
  }) {
    this.#database = options.database;
    this.#limits = options.limits;
    this.#pollMs = options.pollMs;
    this.#wanted = options.wanted;
    this.#publish = options.publish;
  }

  /** Rows up to here have been published, or were there before anybody listened. */
  get position(): number {
    return this.#position;
  }

  get isRunning(): boolean {
    return this.#stop !== null;
  }

  /** Begins after `position`. Does nothing if it is running. */
  start(position: number): void {
    if (this.#stop !== null) return;
    this.#position = position;
    this.#whole = position;
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

  /** Resolves once no read is running: the next one includes what is wanted by then. */
  async idle(): Promise<void> {
    while (this.#reading !== null) await this.#reading;
  }

  #wake(): void {
    this.#isAwake = true;
    this.#loop ??= this.#run().finally(() => {
      this.#loop = null;
      // a commit may have come between the loop's last read and its end
      if (this.#isAwake && this.isRunning) this.#wake();
    });
  }

  async #run(): Promise<void> {
    while (this.#isAwake && this.isRunning) {
      this.#isAwake = false;
      const beganAt = performance.now();
      this.#reading = this.#tick();
      await this.#reading;
      this.#reading = null;
      await yieldToLoop();
      await pauseAfter(this.#chunkCount, performance.now() - beganAt);
    }
  }

  /** Never throws. */
  async #tick(): Promise<void> {
    this.#chunkCount = 0;
    const stop = this.#stop;
    try {
      const wanted = this.#wanted();
      const page = await readAfter(this.#database, wanted, this.#position, 'near', this.#limits);
      // stopped, and perhaps started elsewhere, while it read
      if (stop === null || stop !== this.#stop) return;
      const [from, whole] = [this.#position, this.#whole];
      this.#position = page.upTo;
      if (page.complete) this.#whole = page.upTo;
      else this.#isAwake = true;
      this.#failing = false;
      if (page.rows.length > 0 || page.removedUpTo > whole) this.#chunkCount = await this.#publish(page, from, whole);
    } catch (error) {
      if (stop !== this.#stop) return;
      // damage has been logged already
      const isSaid = this.#failing || this.#database.damage.code !== null;
      if (!isSaid) serverLog('error', 'live updates are held up:', { error: inShort(error) });
      this.#failing = true;
    }
  }
}

/**
 * A tick after a quiet moment leaves at once; after that, at most about half of the time goes to ticks. With many
 * subscribers, or a machine that is slow at the moment, they grow larger instead of starving ingest.
 */
async function pauseAfter(chunkCount: number, tookMs: number): Promise<void> {
  const paceMs = chunkCount * PACE_MS_PER_CHUNK;
  // `tookMs` includes time spent on the disk, for which subscribers need not wait
  const pauseMs = Math.min(Math.max(paceMs - tookMs, Math.min(tookMs, 2 * paceMs)), MAX_PAUSE_MS);
  if (pauseMs >= 1) await pause(pauseMs);
}
