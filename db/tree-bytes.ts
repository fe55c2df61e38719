import type { Reader } from './reader';

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
    if (isUntold(error)) return null;
    throw error;
  }
}

/** Whether it is the database that does not tell its sizes. */
export function isUntold(error: unknown): boolean {
  return /\bdbstat\b|not authorized|prohibited|unsupported/i.test(String(error));
}
