import {
  type RetentionRules,
  STORAGE_PARTS,
  type Storage,
  type StoragePart,
  type StoragePartName,
  type StorageSizes,
  type StorageTable,
} from '@interlude/protocol/storage';
import type { Reader } from '@/db/reader';
import { treeBytes } from '@/db/used-bytes';
import type { RequestContext, ResponseCaches } from '@/lib/server/access/request-context';
import type { TtlCache } from '@/lib/server/access/ttl-cache';

/** Lifetime of a measurement: at least TTL_FACTOR its duration. */
const MIN_TTL_MS = 60_000;
const TTL_FACTOR = 30;

interface StorageContext {
  database: { reader: Reader };
  now: () => number;
  caches: ResponseCaches;
  retention: RetentionRules;
}

/** `GET /storage` */
export async function getStorage(_context: RequestContext, context: StorageContext): Promise<Storage> {
  const { database, now, caches, retention } = context;
  return { ...(await readStorage(database.reader, now, caches.storage)), retention };
}

/** The database's sizes, cached for a while. */
export function readStorage(reader: Reader, now: () => number, cache: TtlCache<StorageSizes>): Promise<StorageSizes> {
  return cache.get(
    now,
    () => measure(reader, now()),
    (_, tookMs) => Math.max(MIN_TTL_MS, tookMs * TTL_FACTOR),
  );
}

async function measure(reader: Reader, at: number): Promise<StorageSizes> {
  const { rows } = await reader.execute(
    'SELECT page_size, page_count, freelist_count FROM pragma_page_size, pragma_page_count, pragma_freelist_count',
  );
  const [row] = rows;
  const pageBytes = Number(row?.page_size);
  const [bytes, freeBytes] = [pageBytes * Number(row?.page_count), pageBytes * Number(row?.freelist_count)];
  const measured = await measureTables(reader);
  const tables = measured ?? (await estimateTables(reader, bytes - freeBytes));
  const parts = new Map<StoragePartName, StoragePart>();
  for (const table of tables.filter((one) => one.bytes > 0)) {
    const name = partOf(table.name);
    const part = parts.get(name) ?? { name, bytes: 0, tables: [] };
    parts.set(name, { name, bytes: part.bytes + table.bytes, tables: [...part.tables, table] });
  }
  // The remainder: data written during the measurement, and the pages of the free list.
  const rest = bytes - freeBytes - tables.reduce((sum, one) => sum + one.bytes, 0);
  if (rest > 0) {
    const part = parts.get('rest') ?? { name: 'rest', bytes: 0, tables: [] };
    parts.set('rest', { ...part, bytes: part.bytes + rest });
  }
  const method = measured === null ? 'estimated' : 'measured';
  const bySize = (one: { bytes: number }, other: { bytes: number }) => other.bytes - one.bytes;
  const sorted = [...parts.values()].sort(bySize).map((part) => ({ ...part, tables: part.tables.sort(bySize) }));
  return { at, bytes, freeBytes, method, parts: sorted };
}

const TABLES: Record<Exclude<StoragePartName, 'rest'>, RegExp> = {
  events: /^events$/,
  views:
    /^(sessions|agents|turns|tasks|obligations|activity|producers|producer_sessions|runner_generations|session_aliases)$/,
  logs: /^(log_lines|agent_logs|log_components|log_chunks)$/,
  search: /^(log|session)_search/,
  commands: /^(commands|asks|inbox|runners)$/,
  attachments: /^attachment/,
  audit: /^(audit|audit_start|refusals)$/,
  quarantine: /^quarantine$/,
  insights: /^insights$/,
  webhooks: /^webhook_/,
  access: /^(credentials|members|access|server_keys)$/,
};

function partOf(table: string): StoragePartName {
  return STORAGE_PARTS.find((name) => name !== 'rest' && TABLES[name].test(table)) ?? 'rest';
}

/**
 * Measures each table by the pages of its B-trees, one read per tree. Events take about a second per million, on a
 * thread if the driver has them.
 *
 * @returns null if the database does not support it
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

/** Number of sampled places per table, and rows per place. */
const PLACES = 16;
const ROWS = 25;
/** Search indexes consist of page-sized blocks. BLOCKS is the number of blocks per count. */
const BLOCKS = 2_000;
const MAX_COUNTS = 200;
/** Overhead of a row in its table and in each index. */
const ROW_BYTES = 10;
const INDEX_BYTES = 40;

/** Estimates each table from a sample of its rows: their lengths and the density of their rowids. Scaled to `usedBytes`. */
export async function estimateTables(reader: Pick<Reader, 'execute'>, usedBytes: number): Promise<StorageTable[]> {
  const { rows } = await reader.execute(
    `SELECT name, sql, (SELECT count(*) FROM sqlite_master AS i WHERE i.type = 'index' AND i.tbl_name = t.name) AS indexes
      FROM sqlite_master AS t WHERE type = 'table' AND rootpage > 0`,
  );
  const guessed: { name: string; bytes: number }[] = [];
  for (const { name, sql, indexes } of rows) {
    const isOfSearch = /_search_data$/.test(String(name));
    const hasRowid = !/\bWITHOUT\s+ROWID\b/i.test(String(sql));
    const bytes = isOfSearch
      ? await bytesOfBlocks(reader, String(name))
      : hasRowid
        ? await bytesOfRows(reader, String(name), Number(indexes))
        : 0;
    guessed.push({ name: String(name), bytes });
  }
  const sum = guessed.reduce((all, { bytes }) => all + bytes, 0) || 1;
  return guessed.map(({ name, bytes }) => ({ name, bytes: Math.round((bytes / sum) * usedBytes), indexBytes: null }));
}

async function bytesOfRows(reader: Pick<Reader, 'execute'>, table: string, indexes: number): Promise<number> {
  const columns = await reader.execute({ sql: 'SELECT name FROM pragma_table_info(?)', args: [table] });
  const length = columns.rows.map(({ name }) => `ifnull(octet_length("${name}"), 0)`).join(' + ');
  // Rowids at even distances from the first to the last.
  const { rows } = await reader.execute(
    `WITH RECURSIVE ends(least, most) AS MATERIALIZED (SELECT (SELECT min(rowid) FROM "${table}"), (SELECT max(rowid) FROM "${table}")),
      places(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM places WHERE at < ${PLACES - 1})
    SELECT least, most, (SELECT json_array(count(*), min(n), max(n), sum(bytes)) FROM (
        SELECT rowid AS n, ${length} AS bytes FROM "${table}"
          WHERE rowid >= least + (most - least) / ${PLACES} * at ORDER BY rowid LIMIT ${ROWS}
      )) AS seen FROM ends, places`,
  );
  const [first] = rows;
  if (first?.least == null) return 0;
  const span = Number(first.most) - Number(first.least) + 1;
  const seen = rows.map(({ seen }) => JSON.parse(String(seen)) as [number, number, number, number | null]);
  const count = seen.reduce((sum, [rows]) => sum + rows, 0);
  const width = seen.reduce((sum, [rows, from, to]) => sum + (rows === 0 ? 0 : to - from + 1), 0);
  const bytes = seen.reduce((sum, [, , , bytes]) => sum + (bytes ?? 0), 0);
  const density = Math.min(1, count / Math.max(width, 1));
  return span * density * (bytes / Math.max(count, 1) + ROW_BYTES + indexes * INDEX_BYTES);
}

/** Counts blocks, because their ids are not dense. */
async function bytesOfBlocks(reader: Pick<Reader, 'execute'>, table: string): Promise<number> {
  let [bytes, after] = [0, '-1'];
  for (let counts = 0; counts < MAX_COUNTS; counts += 1) {
    const { rows } = await reader.execute({
      sql: `SELECT count(*) AS count, ifnull(sum(size), 0) AS bytes, CAST(max(id) AS TEXT) AS last FROM (
          SELECT id, octet_length(block) AS size FROM "${table}" WHERE id > CAST(? AS INTEGER) ORDER BY id LIMIT ${BLOCKS})`,
      args: [after],
    });
    const [row] = rows;
    bytes += Number(row?.bytes ?? 0);
    if (Number(row?.count) < BLOCKS) return bytes;
    after = String(row?.last);
  }
  return bytes;
}
