import { AppError } from '@interlude/protocol/errors';
import type { InStatement, InValue } from '@libsql/client';

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
