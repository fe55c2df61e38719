import { LibsqlError } from '@libsql/client';
import type { DatabaseFile } from './database-file';
import type { LocalConnection } from './local-connection';
import type { Reader } from './reader';

/**
 * Whether all of a database file can be read and hangs together, found out on a connection that knows nothing of it yet.
 * That drops the log of a file that was emptied, and finds nothing wrong with what is left: what others have changed is
 * not opened.
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
 * Whether SQLite thinks that something is in the log beside a file, which is empty: of its own doing then, or of somebody
 * else's, who has taken away what it can't read any more.
 */
export async function knowsFrames(reader: Reader): Promise<boolean> {
  try {
    const { rows } = await reader.execute('PRAGMA wal_checkpoint(PASSIVE)');
    return Number(rows[0]?.log) > 0;
  } catch (error) {
    // of anything else, the next look tells
    return error instanceof LibsqlError && error.extendedCode === 'SQLITE_IOERR_SHORT_READ';
  }
}
