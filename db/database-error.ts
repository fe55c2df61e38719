import { LibsqlError } from '@libsql/client';

/**
 * The libSQL code (`SQLITE_BUSY`, `HRANA_WEBSOCKET_ERROR`, …) behind an error, however deep: drizzle wraps what the
 * client throws and leaves the code in `cause`.
 *
 * @returns null when the error did not come from the database.
 */
export function databaseErrorCode(error: unknown): string | null {
  for (let link = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    if (link instanceof LibsqlError) return link.code;
    // Next may load two copies of the client, and then `instanceof` does not know the other one's errors.
    if (link.name === 'LibsqlError' && 'code' in link && typeof link.code === 'string') return link.code;
  }
  return null;
}
