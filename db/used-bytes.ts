import type { Reader } from '@/db/reader';

/** The log tables with their indexes, and what is searched in them. */
const LOG_TREES = `SELECT name FROM sqlite_master WHERE rootpage > 0
  AND (tbl_name IN ('log_lines', 'log_chunks') OR tbl_name GLOB 'log_search*')`;
/** Where the pages of a table can't be counted: what a line takes for each byte of its message, rather too much. */
const TIMES_MESSAGE = 4;

/**
 * What the database takes, without the room that is free in it and without the agents' logs.
 * @returns null where it can't tell
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
 * What the pages of a table or an index take. A read of its own, on a thread where there is one: about a second for a
 * gigabyte, and nobody waits for it.
 *
 * @returns null where the database can't tell
 */
export async function treeBytes(reader: Pick<Reader, 'execute'>, name: string): Promise<number | null> {
  try {
    const sql = 'SELECT pgsize AS bytes FROM dbstat WHERE name = ? AND aggregate = TRUE';
    const { rows } = await reader.execute({ sql, args: [name] });
    return Number(rows[0]?.bytes ?? 0);
  } catch (error) {
    // not every SQLite is built with it, and not every server lets it be read
    if (isUnsupported(error)) return null;
    throw error;
  }
}

/** Whether it is the database that does not tell its sizes. */
function isUnsupported(error: unknown): boolean {
  return /\bdbstat\b|not authorized|prohibited|unsupported/i.test(String(error));
}
