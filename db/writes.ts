import { AppError } from '@interlude/protocol/errors';
import type { Position } from '@interlude/protocol/position';
import type { InStatement, InValue } from '@libsql/client';
import type { ResultRows } from './reader';

/**
 * The one way to write. A file has one writer at a time and a queue in front of it (WriteQueue); a server has many, and
 * each commits only if nobody has come in between (OptimisticWrites). The same jobs run over both.
 *
 * Ordering: positions follow the order of commits. Jobs that share a key run in the order in which they came.
 * Failure: a job may run more than once, and only its last run is kept: it changes nothing outside its transaction.
 */
export interface Writes {
  /**
   * Runs `job` in a transaction and resolves once that is committed.
   * @throws AppError `unavailable` (with Retry-After) when too many wait, or the database is at fault
   */
  run<T>(job: WriteJob<T>, about?: JobOptions): Promise<T>;
  /** Calls `listener` with the newest position after each commit that moved it. @returns the way to stop. */
  onCommit(listener: (position: Position) => void): () => void;
  /** How many jobs get on beside each other. */
  readonly atOnce: number;
  /** How many jobs wait or run, and the bytes behind them. */
  readonly load: { jobs: number; bytes: number };
  /** Finishes the waiting jobs and accepts no more. */
  close(): Promise<void>;
}

export type WriteJob<T> = (transaction: WriteTransaction) => Promise<T>;

/**
 * A thing that several may want to change. Who has read something in order to change what lies under a key touches that
 * key, and is done only if nobody else has touched it since.
 *
 * `agent:` stands for all that is stored of an agent: its sessions with their turns, tasks, replies and requests, its
 * commands, runner, log and inbox. `session:` is who a session belongs to, for the first that writes to it.
 */
export type WriteKey =
  | `agent:${string}`
  | `producer:${string}`
  | `session:${string}`
  | 'access'
  | 'audit'
  | 'webhook'
  | 'refusals'
  | 'retention';

export interface JobOptions {
  /** How much memory it holds on to while it waits. */
  bytes?: number;
  /** What it touches, as far as that is known before it runs. */
  keys?: readonly WriteKey[];
}

/** Ends a run of a job of which nothing was written, so that it begins anew. A job lets it pass. */
export class RetryTransaction extends Error {}

/** What a job may use: no commit, no rollback. */
export interface WriteTransaction {
  /** How many rows were changed is asked with RETURNING. */
  execute(statement: InStatement): Promise<ResultRows>;
  batch(statements: InStatement[]): Promise<ResultRows[]>;
  /** The newest position, among those this transaction took. What it does not take, another may. */
  position(): Promise<number>;
  /** Takes all positions up to this one. */
  moveTo(position: number): Promise<void>;
  /**
   * From here on, its positions are those that will be committed: what is written holds more than themselves of them, such
   * as a digest. May run the job again from its beginning.
   */
  fixPositions(): void;
  /** What is written depends on what was read under these keys, and changes it. */
  touch(...keys: WriteKey[]): void;
  /** What is written depends on what was read under these keys, and leaves it as it is. */
  rely(...keys: WriteKey[]): void;
}

/**
 * Whether this version may still write to a database, looked at in the transaction that writes: while it runs, a newer one
 * may migrate the database, or somebody may begin to copy into it.
 *
 * A version is the time of the newest migration that it knows; `compatibility` has the oldest that may write, and no row
 * while a copy is under way.
 */
const ALLOWED = 'SELECT 1 FROM compatibility WHERE oldest_writer <= ?';

/** Finds nothing if it may not. */
export function allowed(version: number): InStatement {
  return { sql: ALLOWED, args: [version] };
}

/** Fails, and with it the batch, if it may not: by an error that `isForbidden` knows. */
export function requireAllowed(version: number): InStatement {
  return failWhere(`NOT EXISTS (${ALLOWED})`, [version]);
}

/** A statement that fails, and with it its batch, where a condition holds: the row that it makes then can't be stored. */
export function failWhere(condition: string, args: InValue[] = []): InStatement {
  return { sql: `INSERT INTO compatibility (id, oldest_writer) SELECT 0, NULL WHERE ${condition}`, args };
}

export function isForbidden(error: unknown): boolean {
  return error instanceof Error && /NOT NULL constraint failed: compatibility\.oldest_writer/.test(error.message);
}

export function forbidden(cause?: unknown): AppError {
  const message =
    'A newer Interlude has migrated the database, or somebody copies into it, and nothing was stored. Update this instance, or wait for the copy to end. Then send this again.';
  return new AppError('unavailable', message, { cause, headers: { 'retry-after': '5' } });
}
