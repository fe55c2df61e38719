import { setTimeout as pause } from 'node:timers/promises';
import type { OutgoingRecord } from '../outbox/outbox';
import type { Cursor } from '../outbox/statements';

/**
 * Stands between a source and the outbox: holds what the disk does not accept.
 *
 * Ordering: one group is under way at a time, made of everything that came in the meantime, so nothing overtakes what
 * has to be repeated. What is accepted in one tick is in one group: all of it is stored, or nothing.
 * Failure: a refused group is tried again once a second. Beyond `maxHeld` records, further ones are counted instead of
 * held, and declared lost at that place as soon as the disk accepts something again.
 */
export interface RecordSinkOptions {
  enqueue: (records: OutgoingRecord[], cursors: Cursor[]) => Promise<void>;
  onTrouble: (message: string) => void;
  maxHeld?: number;
  retryMs?: number;
}

interface Group {
  records: OutgoingRecord[];
  cursors: Cursor[];
  stored: () => void;
}

const MAX_HELD = 50_000;
const RETRY_MS = 1_000;

export class RecordSink {
  readonly #options: RecordSinkOptions;
  #waiting: Group[] = [];
  #heldRecords = 0;
  #pump: Promise<void> | null = null;
  #troubled = false;
  readonly #closing = new AbortController();

  constructor(options: RecordSinkOptions) {
    this.#options = options;
  }

  /** Resolves once it is stored, which may take as long as the disk is full. */
  accept(records: OutgoingRecord[], cursors: Cursor[] = []): Promise<void> {
    return new Promise((stored) => {
      this.#waiting.push({ records: this.#bounded(records), cursors, stored });
      this.#pump ??= Promise.resolve().then(() => this.#run());
    });
  }

  /** Resolves when everything is stored, or was refused once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pump;
    if (this.#heldRecords > 0)
      this.#options.onTrouble(`${this.#heldRecords} record(s) could not be stored and are lost`);
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
        this.#heldRecords -= records.length;
        this.#troubled = false;
        for (const { stored } of groups) stored();
      } catch (error) {
        this.#waiting = [...groups, ...this.#waiting];
        if (signal.aborted) break;
        this.#tell(error);
        await pause(this.#options.retryMs ?? RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    // In the same step as the last look: what comes from here on starts a pump of its own.
    this.#pump = null;
  }

  /** The records, or the declaration of their loss if no more can be held. */
  #bounded(records: OutgoingRecord[]): OutgoingRecord[] {
    const [first] = records;
    const fits = this.#heldRecords + records.length <= (this.#options.maxHeld ?? MAX_HELD);
    if (first === undefined || fits) {
      this.#heldRecords += records.length;
      return records;
    }
    const newest = this.#waiting.at(-1)?.records[0];
    if (newest?.kind === 'lost' && newest.sessionId === first.sessionId) {
      newest.lost.count += records.length;
      return [];
    }
    this.#heldRecords += 1;
    const { agentId, sessionId, occurredAt } = first;
    const lost = { count: records.length, reason: 'runner-disk-full' };
    return [
      { kind: 'lost', agentId, ...(sessionId === undefined ? {} : { sessionId }), occurredAt, lost } as OutgoingRecord,
    ];
  }

  #tell(error: unknown): void {
    if (this.#troubled) return;
    this.#troubled = true;
    const why = error instanceof Error ? error.message : String(error);
    this.#options.onTrouble(`the outbox can't be written (${why}); what the agent does is kept in memory meanwhile`);
  }
}
