import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { databaseErrorCode } from './database-error';
import type { BatchServer } from './optimistic-transaction';

const TERM_MS = 5_000;
/** Remaining milliseconds below which the lease is renewed. */
const RENEW_BELOW_MS = 3_000;

const NOW = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const READ = `SELECT holder, until - ${NOW} AS left_ms FROM leases WHERE work = ?`;
const ACQUIRE = `INSERT INTO leases (work, holder, until) VALUES (?1, ?2, ${NOW} + ${TERM_MS})
  ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE holder = excluded.holder OR until <= ${NOW} RETURNING holder`;

/** A released lease has no holder, and `until` is when its last run started. */
const NO_HOLDER = '';
const RELEASE = `UPDATE leases SET holder = '${NO_HOLDER}', until = ${NOW} - ?3 WHERE work = ?1 AND holder = ?2`;
const DONE = `SELECT ${NOW} - until AS started_ms FROM leases WHERE work = ? AND holder = '${NO_HOLDER}'`;

export interface Lease {
  /** Acquires the lease if it is free, or renews it. @returns true if this instance holds it */
  acquire(): Promise<boolean>;
  /** Releases the lease after the work, so other instances need not wait for the end of the term. */
  release(tookMs: number): Promise<void>;
  /** Milliseconds since the last completed run started; null if one is in progress or none has completed. */
  sinceLastRunMs(): Promise<number | null>;
}

/** Without a lease: every process on the same file does the due work it finds. */
export const NO_LEASE: Lease = { acquire: async () => true, release: async () => {}, sinceLastRunMs: async () => null };

/**
 * Assigns periodic work to one of several instances on a libSQL server: the one that holds the lease and renews it.
 *
 * Ordering: none. The work's writes are guarded like all others; a lease only keeps two instances from doing the same
 * work at once.
 * Failure: when a holder dies or freezes, another takes over at the end of its term. The server's clock counts terms, so
 * the instances' clocks need not agree.
 */
export class ServerLease implements Lease {
  readonly #server: Pick<BatchServer, 'batch'>;
  readonly #work: string;
  readonly #holder = crypto.randomUUID();

  constructor(server: Pick<BatchServer, 'batch'>, work: string) {
    this.#server = server;
    this.#work = work;
  }

  async acquire(): Promise<boolean> {
    try {
      return await this.#acquireOrRenew();
    } catch (error) {
      // Another instance is acquiring it.
      if (/^SQLITE_(BUSY|LOCKED)/.test(databaseErrorCode(error) ?? '')) return false;
      throw error;
    }
  }

  async release(tookMs: number): Promise<void> {
    await this.#server.batch([{ sql: RELEASE, args: [this.#work, this.#holder, Math.ceil(tookMs)] }], 'write');
  }

  async sinceLastRunMs(): Promise<number | null> {
    const [found] = await this.#server.batch([{ sql: DONE, args: [this.#work] }], 'read');
    const row = found?.rows[0];
    return row === undefined ? null : Number(row.started_ms);
  }

  async #acquireOrRenew(): Promise<boolean> {
    const [found] = await this.#server.batch([{ sql: READ, args: [this.#work] }], 'read');
    const row = found?.rows[0];
    const remainingMs = Number(row?.left_ms ?? 0);
    const isOurs = row?.holder === this.#holder;
    if (remainingMs > (isOurs ? RENEW_BELOW_MS : 0)) return isOurs;
    const [acquired] = await this.#server.batch([{ sql: ACQUIRE, args: [this.#work, this.#holder] }], 'write');
    return acquired?.rows.length === 1;
  }
}

/**
 * Runs background work in one process at a time, and each kind once at a time.
 *
 * Failure: logged once, until a run succeeds. The next run does the remaining work.
 */
export class LeasedWork {
  readonly #lease: Lease;
  readonly #failure: string;
  readonly #onClosed: () => void;
  readonly #busy = new Set<string>();
  #isFailing = false;
  #isClosed = false;

  /**
   * @param failure log message for a failed run
   * @param onClosed called when the database is found closed
   */
  constructor(options: { lease: Lease; failure: string; onClosed: () => void }) {
    this.#lease = options.lease;
    this.#failure = options.failure;
    this.#onClosed = options.onClosed;
  }

  /**
   * Starts the work in the background, unless the last run of that kind is still in progress.
   *
   * @param isDue returns true if there is anything to do
   */
  begin(kind: string, work: () => Promise<void>, isDue: () => Promise<boolean> = async () => true): void {
    if (this.#busy.has(kind) || this.#isClosed) return;
    this.#busy.add(kind);
    isDue()
      .then((due) => due && this.#lease.acquire())
      .then((isOurs) => (isOurs ? work() : undefined))
      .then(() => {
        this.#isFailing = false;
      })
      .catch((error) => this.#failed(error))
      .finally(() => this.#busy.delete(kind));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Starts no further work. */
  close(): void {
    this.#isClosed = true;
  }

  #failed(error: unknown): void {
    if (databaseErrorCode(error) === 'CLIENT_CLOSED') this.#onClosed();
    // The queue is full or closing. The senders of records got that error.
    else if (error instanceof AppError && error.code === 'unavailable') return;
    else if (!this.#isFailing) serverLog('error', this.#failure, { error });
    this.#isFailing = true;
  }
}
