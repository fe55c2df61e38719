import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { databaseErrorCode } from './database-error';
import type { BatchServer } from './optimistic-transaction';

/**
 * Who of several instances on one libSQL server does a piece of work: whoever holds its lease, and renews it in time.
 *
 * Ordering: none. What the work writes is guarded like all else; a lease only keeps two from doing it at once.
 * Failure: a holder that dies or freezes is followed by another when its term runs out. Terms are counted by the server's
 * clock, so those of the instances need not agree.
 */
const TERM_MS = 5_000;
/** Renewed when less than this is left. */
const RENEW_BELOW_MS = 3_000;

const NOW = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const LOOK = `SELECT holder, until - ${NOW} AS left_ms FROM leases WHERE work = ?`;
const TAKE = `INSERT INTO leases (work, holder, until) VALUES (?1, ?2, ${NOW} + ${TERM_MS})
  ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE holder = excluded.holder OR until <= ${NOW} RETURNING holder`;

/** Who holds what nobody does. Then `until` says when what was done last began. */
const NOBODY = '';
const LET_GO = `UPDATE leases SET holder = '${NOBODY}', until = ${NOW} - ?3 WHERE work = ?1 AND holder = ?2`;
const DONE = `SELECT ${NOW} - until AS begun_ms FROM leases WHERE work = ? AND holder = '${NOBODY}'`;

/** Whose a piece of work is to do, of all that have the database open. */
export interface Lease {
  /** Whether it is for this one now. Takes the lease where it is free, and renews it. */
  isHeld(): Promise<boolean>;
  /** The work is done, and took so long: others need not wait for the end of the term. */
  letGo(tookMs: number): Promise<void>;
  /** How long ago that began which was done last, in milliseconds; null while somebody is at it, or if nobody was. */
  doneSinceMs(): Promise<number | null>;
}

/** Of those on one file, each does what it finds. */
export const NO_LEASE: Lease = { isHeld: async () => true, letGo: async () => {}, doneSinceMs: async () => null };

export class ServerLease implements Lease {
  readonly #server: Pick<BatchServer, 'batch'>;
  readonly #work: string;
  readonly #holder = crypto.randomUUID();

  constructor(server: Pick<BatchServer, 'batch'>, work: string) {
    this.#server = server;
    this.#work = work;
  }

  async isHeld(): Promise<boolean> {
    try {
      return await this.#look();
    } catch (error) {
      // somebody else is just taking it
      if (/^SQLITE_(BUSY|LOCKED)/.test(databaseErrorCode(error) ?? '')) return false;
      throw error;
    }
  }

  async letGo(tookMs: number): Promise<void> {
    await this.#server.batch([{ sql: LET_GO, args: [this.#work, this.#holder, Math.ceil(tookMs)] }], 'write');
  }

  async doneSinceMs(): Promise<number | null> {
    const [found] = await this.#server.batch([{ sql: DONE, args: [this.#work] }], 'read');
    const row = found?.rows[0];
    return row === undefined ? null : Number(row.begun_ms);
  }

  async #look(): Promise<boolean> {
    const [found] = await this.#server.batch([{ sql: LOOK, args: [this.#work] }], 'read');
    const row = found?.rows[0];
    const leftMs = Number(row?.left_ms ?? 0);
    const isOurs = row?.holder === this.#holder;
    if (leftMs > (isOurs ? RENEW_BELOW_MS : 0)) return isOurs;
    const [taken] = await this.#server.batch([{ sql: TAKE, args: [this.#work, this.#holder] }], 'write');
    return taken?.rows.length === 1;
  }
}

/**
 * Work on a database that is for one of its processes to do, and for that one to do once at a time.
 *
 * Failure: it is said once, until something works again. Whatever was not done is left for the next time.
 */
export class LeasedWork {
  readonly #lease: Lease;
  readonly #failure: string;
  readonly #onClosed: () => void;
  readonly #busy = new Set<string>();
  #isFailing = false;
  #isClosed = false;

  /**
   * @param lease says whether it is for this process to do
   * @param failure what to say of a failure, in front of it
   * @param onClosed called when the database turns out to be closed: nothing is left to work on
   */
  constructor(options: { lease: Lease; failure: string; onClosed: () => void }) {
    this.#lease = options.lease;
    this.#failure = options.failure;
    this.#onClosed = options.onClosed;
  }

  /**
   * Begins, unless the last of that kind has not ended.
   *
   * @param isDue whether there is anything to do
   */
  begin(kind: string, work: () => Promise<void>, isDue: () => Promise<boolean> = async () => true): void {
    if (this.#busy.has(kind) || this.#isClosed) return;
    this.#busy.add(kind);
    isDue()
      .then((due) => due && this.#lease.isHeld())
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

  /** Nothing begins any more. */
  close(): void {
    this.#isClosed = true;
  }

  #failed(error: unknown): void {
    if (databaseErrorCode(error) === 'CLIENT_CLOSED') this.#onClosed();
    // The queue is full, or closing: whoever sent a record has been told so.
    else if (error instanceof AppError && error.code === 'unavailable') return;
    else if (!this.#isFailing) serverLog('error', this.#failure, { error });
    this.#isFailing = true;
  }
}
