import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { Database } from '@/db/client';
import { LeasedWork } from '@/db/lease';
import { RowSweep } from '@/db/row-sweep';
import { paced, unref } from '@/db/yield-to-loop';
import { ClockTrust, newestReceivedAt } from '@/lib/server/access/clock-trust';
import type { ServerContext } from '@/lib/server/access/request-context';
import { removeAudit } from './remove-audit';
import { type Limits, limitsByAge, type RunSlice, removeBySize, removeHistory } from './remove-history';
import { removeQuarantined, removeRows } from './remove-rows';
import type { HistoryRetention } from './retention-settings';

const RETENTION_EVERY_MS = 10 * 60_000;

/**
 * Removes old history in slices, with pauses between them, so ingest and readers go first. Open history stays,
 * regardless of its age.
 *
 * Ordering: oldest first within a session; see removeOldTurns.
 * Failure: all state is in the database. The next run does the remaining work.
 */
export class HistoryKeeper {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #retention: HistoryRetention;
  readonly #trust: ClockTrust;
  readonly #isLongLived: boolean;
  readonly #rows: RowSweep;
  readonly #work: LeasedWork;
  #timer: ReturnType<typeof setInterval> | null = null;
  #isTooLarge = false;

  constructor(server: Pick<ServerContext, 'database' | 'now' | 'steady' | 'kind'>, retention: HistoryRetention) {
    this.#isLongLived = server.kind !== 'perRequest';
    this.#database = server.database;
    this.#now = server.now;
    this.#retention = retention;
    this.#work = new LeasedWork({
      lease: server.database.lease('history'),
      failure: 'retention failed:',
      onClosed: () => this.close(),
    });
    this.#rows = new RowSweep(server.database.reader);
    this.#trust = new ClockTrust(server.now, server.steady);
  }

  /** Starts, unless already started. */
  start(): void {
    if (this.#timer !== null || this.#work.isClosed) return;
    const run = () => this.#work.begin('removing', () => this.retain());
    this.#timer = setInterval(run, RETENTION_EVERY_MS);
    unref(this.#timer);
    run();
  }

  /** Stops after the running slice. */
  close(): void {
    this.#work.close();
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Applies the limits if the clock can be trusted. */
  async retain(): Promise<void> {
    // A per-request host is trusted to keep its clock right.
    const isTrusted = !this.#isLongLived || this.#trust.isTrusted(await newestReceivedAt(this.#database.reader));
    if (isTrusted) await this.removeOld();
  }

  /** Applies the limits even if the clock can't be trusted. */
  async removeOld(): Promise<void> {
    // The same time for all slices, even if the clock is stepped meanwhile.
    const now = this.#now();
    const slices: RunSlice = async (slice) => {
      if (!this.#work.isClosed) await paced(slice);
    };
    const remove = async (limits: Limits) => {
      await removeHistory(this.#database, this.#rows, limits, now, slices);
      await removeQuarantined(this.#database, this.#rows, limits.elsewhere, now, slices);
      await removeRows(this.#database, this.#rows, limits.elsewhere, slices);
    };
    await remove(await limitsByAge(this.#database, this.#retention, now));
    await removeAudit(this.#database, now - this.#retention.auditMs, now, slices);
    const isSmall = this.#work.isClosed || (await removeBySize(this.#database, this.#retention, now, remove));
    if (!isSmall && !this.#isTooLarge) {
      serverLog(
        'warn',
        'the database exceeds INTERLUDE_RETENTION_MIB even without its logs, and nothing more can be removed: the remaining history is open, less than an hour old, part of the audit, or kept by INTERLUDE_RETENTION_DAYS_BY_STATE. Raise the limit, or shorten those times.',
      );
    }
    this.#isTooLarge = !isSmall;
  }
}
