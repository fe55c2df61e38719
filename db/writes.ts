import { AppError } from '@interlude/protocol/errors';
import type { Position } from '@interlude/protocol/position';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement, InValue } from '@libsql/client';
import type { ResultRows } from './reader';

/**
 * The only way to write. A file has one writer with a queue (WriteQueue). A server has many writers, and a commit
 * succeeds only if no other commit touched the same keys in between (OptimisticWrites). The same jobs run on both.
 *
 * Ordering: positions follow the order of commits. Jobs that share a key run in the order they arrived.
 * Failure: a job may run several times, and only its last run is kept. So a job must not change anything outside its
 * transaction.
 */
export interface Writes {
  /**
   * Runs `job` in a transaction and resolves once that is committed.
   * @throws AppError `unavailable` (with Retry-After) if too many jobs wait, or the database is at fault
   */
  run<T>(job: WriteJob<T>, options?: JobOptions): Promise<T>;
  /**
   * Calls `listener` with the newest position after each commit that advanced it. @returns a function that stops the
   * calls
   */
  onCommit(listener: (position: Position) => void): () => void;
  /** Number of jobs that can run at once. */
  readonly concurrency: number;
  /** Waiting and running jobs, and the bytes of their requests. */
  readonly load: { jobs: number; bytes: number };
  /** Finishes waiting jobs and accepts no more. */
  close(): Promise<void>;
}

/** A listener that throws does not affect the others. */
export class CommitListeners {
  readonly #listeners = new Set<(position: Position) => void>();

  add(listener: (position: Position) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  announce(position: Position): void {
    for (const listener of this.#listeners) {
      try {
        listener(position);
      } catch (error) {
        serverLog('error', 'a commit listener failed', { error });
      }
    }
  }
}

export function shuttingDown(): AppError {
  return unavailable('Interlude is shutting down. Send this again in a moment.', '1');
}

export function queueFull(): AppError {
  return unavailable('Too many writes are waiting. Send this again in a second.', '1');
}

function unavailable(message: string, retryAfter: string, cause?: unknown): AppError {
  return new AppError('unavailable', message, { cause, headers: { 'retry-after': retryAfter } });
}

export type WriteJob<T> = (transaction: WriteTransaction) => Promise<T>;

/**
 * A unit of conflict detection. A transaction touches a key when it changes that key's rows based on a read. It commits only
 * if no other transaction has touched the key since.
 *
 * `agent:` covers everything stored about an agent: sessions with their turns, tasks, replies and requests, its commands,
 * runner, log and inbox. `session:` covers the ownership of a session that does not exist yet.
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
  /** Bytes that the job holds in memory while it waits. */
  bytes?: number;
  /** Keys known before the job runs. */
  keys?: readonly WriteKey[];
}

/** Aborts a run that has written nothing, so the job starts again. Jobs must not catch it. */
export class RetryTransaction extends Error {}

/** A transaction without commit and rollback. */
export interface WriteTransaction {
  execute(statement: InStatement): Promise<ResultRows>;
  batch(statements: InStatement[]): Promise<ResultRows[]>;
  /** The newest position that this transaction has claimed; without one, the newest stored position. */
  position(): Promise<number>;
  /** Claims all positions up to this one. */
  moveTo(position: number): Promise<void>;
  /**
   * Makes the positions final. Call before writing values derived from positions, such as digests. May restart the job.
   */
  fixPositions(): void;
  /** Declares that the transaction changes rows that it read under these keys. */
  touch(...keys: WriteKey[]): void;
  /** Declares that the transaction depends on rows that it read under these keys, without changing them. */
  rely(...keys: WriteKey[]): void;
}

/**
 * Checks within each write that this version may still write, because a newer version may migrate the database, or a
 * copy into it may start, at any time. A version is the time of its newest migration. `compatibility` holds the oldest
 * version that may write, and no row during a copy.
 */
const ALLOWED = 'SELECT 1 FROM compatibility WHERE oldest_writer <= ?';

/** Finds no row if the version may not write. */
export function allowed(version: number): InStatement {
  return { sql: ALLOWED, args: [version] };
}

/** Fails its batch if the version may not write, with an error that `isForbidden` recognises. */
export function requireAllowed(version: number): InStatement {
  return failWhere(`NOT EXISTS (${ALLOWED})`, [version]);
}

/** Fails its batch if a condition holds, by inserting a row that can't be stored. */
export function failWhere(condition: string, args: InValue[] = []): InStatement {
  return { sql: `INSERT INTO compatibility (id, oldest_writer) SELECT 0, NULL WHERE ${condition}`, args };
}

export function isForbidden(error: unknown): boolean {
  return error instanceof Error && /NOT NULL constraint failed: compatibility\.oldest_writer/.test(error.message);
}

export function forbidden(cause?: unknown): AppError {
  const message =
    'A newer Interlude has migrated the database, or a copy into it is running, and nothing was stored. Update this instance, or wait for the copy to finish. Then send this again.';
  return unavailable(message, '5', cause);
}
