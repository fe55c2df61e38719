import type { Database } from '@/db/client';
import { LeasedWork } from '@/db/lease';
import { ALL_DUE, hasDue, RowSweep, selectDue } from '@/db/row-sweep';
import { paced } from '@/db/yield-to-loop';
import { ClockTrust, newestReceived } from '@/lib/server/access/clock-trust';
import type { ServerContext } from '@/lib/server/access/server-context';
import { chunkBacklogs, chunkNextLines, UNINDEXED_LOGS } from './chunk-lines';
import { overdueLogs, type Retention, removeOldLines } from './remove-old-lines';

/** How long after a commit to look for lines to index, and how often for those another process wrote. */
const INDEX_AFTER_MS = 200;
const POLL_MS = 5000;
/** How often to look for lines to remove. */
const RETENTION_EVERY_MS = 60_000;

/**
 * Maintains the logs of a process: indexes what ingest has written, and removes what is too old or too much. Both in
 * slices with pauses in between, so that records and readers go first.
 *
 * Ordering: none between agents; within one, see chunkNextLines and removeOldLines.
 * Failure: everything it knows is in the database; what was not done is found at the next look.
 */
export class LogKeeper {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #retention: Retention;
  readonly #trust: ClockTrust;
  readonly #lasts: boolean;
  #unlisten: (() => void) | null = null;
  #timers: ReturnType<typeof setInterval>[] = [];
  #soon: ReturnType<typeof setTimeout> | undefined;
  readonly #rows: RowSweep;
  readonly #work: LeasedWork;

  constructor(server: Pick<ServerContext, 'database' | 'now' | 'steady' | 'kind'>, retention: Retention) {
    this.#lasts = server.kind !== 'perRequest';
    this.#database = server.database;
    this.#work = new LeasedWork({
      lease: server.database.lease('logs'),
      failure: 'logs are neither indexed nor cut: ',
      onClosed: () => this.close(),
    });
    this.#rows = new RowSweep(server.database.reader);
    this.#now = server.now;
    this.#retention = retention;
    this.#trust = new ClockTrust(server.now, server.steady);
  }

  /** Begins, unless it has begun. */
  keep(): void {
    if (this.#unlisten !== null || this.#work.isClosed) return;
    this.#unlisten = this.#database.onCommit(() => this.#lookSoon());
    const retain = () => this.#work.begin('removing', () => this.retain());
    this.#timers = [setInterval(() => this.#lookSoon(), POLL_MS), setInterval(retain, RETENTION_EVERY_MS)];
    for (const timer of this.#timers) unref(timer);
    this.#lookSoon();
    retain();
  }

  /** Stops. A running slice is finished. */
  close(): void {
    this.#work.close();
    this.#unlisten?.();
    clearTimeout(this.#soon);
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Indexes all lines that make whole chunks, now. */
  async indexAll(): Promise<void> {
    const { reader } = this.#database;
    await this.#rows.run({
      kind: 'the index of the log of',
      due: UNINDEXED_LOGS,
      work: async (choice) => {
        if (this.#work.isClosed) return 0;
        let indexed = 0;
        for (const backlog of await chunkBacklogs(reader, choice)) {
          await paced(async () => {
            if (await chunkNextLines(this.#database, backlog)) indexed += 1;
          });
        }
        return indexed;
      },
    });
  }

  /** Removes what is too much and, by a clock that can be trusted, what is too old. */
  async retain(): Promise<void> {
    // where no process lasts, the host keeps the clock
    await this.#database.tidy();
    await this.removeOld(!this.#lasts || this.#trust.look(await newestReceived(this.#database.reader)));
  }

  /** Removes all lines that are too many, now, and those that are too old unless `byAge` is false. */
  async removeOld(byAge = true): Promise<void> {
    const { reader, writes } = this.#database;
    // the same time for all slices, even if the clock is moved meanwhile
    const now = byAge ? this.#now() : 0;
    const overdue = overdueLogs(this.#retention, now);
    await this.#rows.run({
      kind: 'the old end of the log of',
      due: overdue,
      work: async (choice) => {
        if (this.#work.isClosed) return 0;
        let removed = 0;
        const { rows } = await reader.execute(selectDue(overdue, choice, overdue.key, ALL_DUE));
        for (const agentId of rows.map((row) => String(row.agent_id))) {
          await paced(async () => {
            removed += await writes.run((transaction) => removeOldLines(transaction, agentId, this.#retention, now));
          });
        }
        return removed;
      },
    });
  }

  #lookSoon(): void {
    if (this.#soon !== undefined || this.#work.isClosed) return;
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      // a running slice finds what is left to do by itself
      this.#work.begin(
        'indexing',
        () => this.indexAll(),
        () => hasDue(this.#database.reader, [UNINDEXED_LOGS]),
      );
    }, INDEX_AFTER_MS);
    unref(this.#soon);
  }
}

function unref(timer: unknown): void {
  if (typeof timer === 'object') (timer as { unref?: () => void }).unref?.();
}
