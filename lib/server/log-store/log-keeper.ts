import type { Database } from '@/db/client';
import { LeasedWork } from '@/db/lease';
import { ALL_DUE, hasDue, RowSweep, selectDue } from '@/db/row-sweep';
import { paced, unref } from '@/db/yield-to-loop';
import { ClockTrust, newestReceivedAt } from '@/lib/server/access/clock-trust';
import type { ServerContext } from '@/lib/server/access/request-context';
import { chunkBacklogs, chunkNextLines, UNINDEXED_LOGS } from './chunk-lines';
import { overdueLogs, type Retention, removeOldLines } from './remove-old-lines';

/** Delay after a commit before indexing, and the interval for lines of other processes. */
const INDEX_AFTER_MS = 200;
const POLL_MS = 5000;
const RETENTION_EVERY_MS = 60_000;

/**
 * Maintains the logs: indexes new lines, and removes the oldest ones beyond the age and size limits. Pauses between
 * slices of work, so ingest and readers go first.
 *
 * Ordering: none between agents; within an agent, see chunkNextLines and removeOldLines.
 * Failure: all state is in the database. The next run does the remaining work.
 */
export class LogKeeper {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #retention: Retention;
  readonly #trust: ClockTrust;
  readonly #isLongLived: boolean;
  #unlisten: (() => void) | null = null;
  #timers: ReturnType<typeof setInterval>[] = [];
  #indexTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #rows: RowSweep;
  readonly #work: LeasedWork;

  constructor(server: Pick<ServerContext, 'database' | 'now' | 'steady' | 'kind'>, retention: Retention) {
    this.#isLongLived = server.kind !== 'perRequest';
    this.#database = server.database;
    this.#work = new LeasedWork({
      lease: server.database.lease('logs'),
      failure: 'log indexing or retention failed:',
      onClosed: () => this.close(),
    });
    this.#rows = new RowSweep(server.database.reader);
    this.#now = server.now;
    this.#retention = retention;
    this.#trust = new ClockTrust(server.now, server.steady);
  }

  /** Starts, unless already started. */
  start(): void {
    if (this.#unlisten !== null || this.#work.isClosed) return;
    this.#unlisten = this.#database.onCommit(() => this.#indexSoon());
    const retain = () => this.#work.begin('removing', () => this.retain());
    this.#timers = [setInterval(() => this.#indexSoon(), POLL_MS), setInterval(retain, RETENTION_EVERY_MS)];
    for (const timer of this.#timers) unref(timer);
    this.#indexSoon();
    retain();
  }

  /** Stops after the running slice. */
  close(): void {
    this.#work.close();
    this.#unlisten?.();
    clearTimeout(this.#indexTimer);
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Indexes lines until fewer than a whole chunk are left. */
  async indexAll(): Promise<void> {
    const { reader } = this.#database;
    await this.#rows.run({
      kind: 'index of log',
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

  /** Removes lines over the size limit and, if the clock can be trusted, over the age limit. */
  async retain(): Promise<void> {
    await this.#database.prune();
    // A per-request host is trusted to keep its clock right.
    await this.removeOld(!this.#isLongLived || this.#trust.isTrusted(await newestReceivedAt(this.#database.reader)));
  }

  /** @param byAge true to also remove lines over the age limit */
  async removeOld(byAge = true): Promise<void> {
    const { reader, writes } = this.#database;
    // The same time for all slices, even if the clock is stepped meanwhile.
    const now = byAge ? this.#now() : 0;
    const overdue = overdueLogs(this.#retention, now);
    await this.#rows.run({
      kind: 'old lines of log',
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

  #indexSoon(): void {
    if (this.#indexTimer !== undefined || this.#work.isClosed) return;
    this.#indexTimer = setTimeout(() => {
      this.#indexTimer = undefined;
      // A slice that is already running also finds the new lines.
      this.#work.begin(
        'indexing',
        () => this.indexAll(),
        () => hasDue(this.#database.reader, [UNINDEXED_LOGS]),
      );
    }, INDEX_AFTER_MS);
    unref(this.#indexTimer);
  }
}
