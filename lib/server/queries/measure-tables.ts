import type { StorageTable } from '@interlude/protocol/storage';
import type { Reader } from '@/db/reader';
import { treeBytes } from '@/db/used-bytes';

/**
 * What each table takes, by the pages of its trees. Each tree is a read of its own, on a thread where there is one: the
 * longest is that of the events, about a second for a million, and nobody waits for it.
 *
 * @returns null where the database can't tell
 */
export async function measureTables(reader: Pick<Reader, 'execute'>): Promise<StorageTable[] | null> {
  const trees = await reader.execute(
    "SELECT name, tbl_name, type FROM sqlite_master WHERE rootpage > 0 UNION ALL SELECT 'sqlite_schema', 'sqlite_schema', 'table'",
  );
  const tables = new Map<string, StorageTable>();
  for (const { name, tbl_name: of, type } of trees.rows) {
    const bytes = await treeBytes(reader, String(name));
    if (bytes === null) return null;
    const table = tables.get(String(of)) ?? { name: String(of), bytes: 0, indexBytes: 0 };
    const indexBytes = (table.indexBytes ?? 0) + (type === 'index' ? bytes : 0);
    tables.set(table.name, { ...table, bytes: table.bytes + bytes, indexBytes });
  }
  return [...tables.values()];
}
