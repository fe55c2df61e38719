import type { Reader } from '@/db/reader';

/** The log tables with their indexes and search tables. */
const LOG_TREES = `SELECT name FROM sqlite_master WHERE rootpage > 0
  AND (tbl_name IN ('log_lines', 'log_chunks') OR tbl_name GLOB 'log_search*')`;
/** Generous estimate of a line's bytes per byte of its message, for databases that can't report sizes. */
const TIMES_MESSAGE = 4;

/**
 * Bytes the database uses, without free pages and without the agents' logs.
 * @returns null if the database can't report it
 */
export async function usedBytes(reader: Pick<Reader, 'execute'>): Promise<number | null> {
  const used = await pageBytes(reader);
  if (used === null) return null;
  let logs = 0;
  for (const { name } of (await reader.execute(LOG_TREES)).rows) {
    const bytes = await treeBytes(reader, String(name));
    if (bytes === null) return Math.max(0, used - TIMES_MESSAGE * (await messageBytes(reader)));
    logs += bytes;
  }
  return Math.max(0, used - logs);
}

async function pageBytes(reader: Pick<Reader, 'execute'>): Promise<number | null> {
  try {
    const { rows } = await reader.execute(
      'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
    );
    return Number(rows[0]?.bytes ?? 0);
  } catch (error) {
    if (isUnsupported(error)) return null;
    throw error;
  }
}

async function messageBytes(reader: Pick<Reader, 'execute'>): Promise<number> {
  const { rows } = await reader.execute('SELECT total(bytes) AS bytes FROM agent_logs');
  return Number(rows[0]?.bytes ?? 0);
}

/**
 * Bytes of a table's or an index's pages. Takes about a second per gigabyte, on a thread if the driver has them.
 *
 * @returns null if the database can't report it
 */
export async function treeBytes(reader: Pick<Reader, 'execute'>, name: string): Promise<number | null> {
  try {
    const sql = 'SELECT pgsize AS bytes FROM dbstat WHERE name = ? AND aggregate = TRUE';
    const { rows } = await reader.execute({ sql, args: [name] });
    return Number(rows[0]?.bytes ?? 0);
  } catch (error) {
    // SQLite may be built without `dbstat`, and a server may forbid it.
    if (isUnsupported(error)) return null;
    throw error;
  }
}

function isUnsupported(error: unknown): boolean {
  return /\bdbstat\b|not authorized|prohibited|unsupported/i.test(String(error));
}
