import type { Reader } from '@/db/reader';

/** What the database takes, without the room that is free in it. @returns null where it can't tell */
export async function usedBytes(reader: Pick<Reader, 'execute'>): Promise<number | null> {
  try {
    const { rows } = await reader.execute(
      'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
    );
    return Number(rows[0]?.bytes);
  } catch (error) {
    if (/not authorized|prohibited|unsupported/i.test(String(error))) return null;
    throw error;
  }
}
