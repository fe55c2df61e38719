import { LibsqlError } from '@libsql/client';
import type { DatabaseFile } from './database-file';
import type { LocalConnection } from './local-connection';
import type { Reader } from './reader';

/**
 * Whether all of a database file can be read and is consistent, checked over a new connection. Opening an emptied file
 * would delete its log and find nothing wrong with the rest, so a file that others have changed is not opened.
 */
export async function isWhole(open: () => LocalConnection, file: Pick<DatabaseFile, 'changed'>): Promise<boolean> {
  if ((await file.changed()) !== null) return false;
  const connection = open();
  try {
    const { rows } = await connection.execute('PRAGMA quick_check(1)', 'thread');
    return rows[0]?.quick_check === 'ok';
  } finally {
    connection.close();
  }
}

/**
 * For an empty log: whether SQLite thinks that there is something in it. If so, somebody else emptied it; if not,
 * SQLite did.
 */
export async function knowsFrames(reader: Reader): Promise<boolean> {
  try {
    const { rows } = await reader.execute('PRAGMA wal_checkpoint(PASSIVE)');
    return Number(rows[0]?.log) > 0;
  } catch (error) {
    // any other failure shows at the next check
    return error instanceof LibsqlError && error.extendedCode === 'SQLITE_IOERR_SHORT_READ';
  }
}
