import { setTimeout as pause } from 'node:timers/promises';
import type { OutgoingRecord } from '../outbox/outbox';
import type { Cursor } from '../outbox/statements';

export interface RecordSinkOptions {
  enqueue: (records: OutgoingRecord[], cursors: Cursor[]) => Promise<void>;
  onTrouble: (message: string) => void;
  maxBuffered?: number;
  retryMs?: number;
}

interface Group {
  records: OutgoingRecord[];
  cursors: Cursor[];
  stored: () => void;
}

const MAX_BUFFERED = 50_000;
const RETRY_MS = 1_000;

/**
 * Buffers records that the outbox rejects, for example while the disk is full.
 *
 * Ordering: one group at a time, made of everything that arrived meanwhile, so nothing overtakes a retried group.
 * Records accepted in one tick share a group and are stored together.
 * Failure: a rejected group is retried every second. Beyond `maxBuffered` records, further ones are counted and declared
 * lost in their place once the disk accepts writes.
 */
export class RecordSink {
  readonly #options: RecordSinkOptions;
  #waiting: Group[] = [];
  #bufferedRecords = 0;
  #pump: Promise<void> | null = null;
  #troubled = false;
  readonly #closing = new AbortController();

  constructor(options: RecordSinkOptions) {
    this.#options = options;
  }

  /** Resolves once stored; on a full disk, once space is free. */
  accept(records: OutgoingRecord[], cursors: Cursor[] = []): Promise<void> {
    return new Promise((stored) => {
      this.#waiting.push({ records: this.#bounded(records), cursors, stored });
      this.#pump ??= Promise.resolve().then(() => this.#run());
    });
  }

  /** Resolves when everything is stored, or has been rejected once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pump;
    if (this.#bufferedRecords > 0)
      this.#options.onTrouble(`${this.#bufferedRecords} record(s) lost: the outbox did not store them`);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#waiting.length > 0) {
      const groups = this.#waiting;
      this.#waiting = [];
      const records = groups.flatMap((group) => group.records);
      const cursors = groups.flatMap((group) => group.cursors);
      try {
        await this.#options.enqueue(records, cursors);
        this.#bufferedRecords -= records.length;
        this.#troubled = false;
        for (const { stored } of groups) stored();
      } catch (error) {
        this.#waiting = [...groups, ...this.#waiting];
        if (signal.aborted) break;
        this.#report(error);
        await pause(this.#options.retryMs ?? RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    // Cleared in the same tick as the last check, so that later records start a new run.
    this.#pump = null;
  }

  /** Replaces the records by a `lost` record if the buffer is full. */
  #bounded(records: OutgoingRecord[]): OutgoingRecord[] {
    const [first] = records;
    const fits = this.#bufferedRecords + records.length <= (this.#options.maxBuffered ?? MAX_BUFFERED);
    if (first === undefined || fits) {
      this.#bufferedRecords += records.length;
      return records;
    }
    const newest = this.#waiting.at(-1)?.records[0];
    if (newest?.kind === 'lost' && newest.sessionId === first.sessionId) {
      newest.lost.count += records.length;
      return [];
    }
    this.#bufferedRecords += 1;
    const { agentId, sessionId, occurredAt } = first;
    const lost = { count: records.length, reason: 'runner-disk-full' };
    return [
      { kind: 'lost', agentId, ...(sessionId === undefined ? {} : { sessionId }), occurredAt, lost } as OutgoingRecord,
    ];
  }

  #report(error: unknown): void {
    if (this.#troubled) return;
    this.#troubled = true;
    const why = error instanceof Error ? error.message : String(error);
    this.#options.onTrouble(`could not write the outbox (${why}); buffering records in memory`);
  }
}
