import type { Reader } from '@/db/reader';
import type { Asked } from '@/lib/access/asked';
import type { ServerContext } from '@/lib/access/server-context';
import { STORAGE_PARTS, type Storage, type StoragePart, type StoragePartName } from '@/lib/protocol/storage';
import { estimateTables } from './estimate-tables';
import { measureTables } from './measure-tables';

/** Numbers are kept this long, and as many times as long as it took to take them. */
const KEPT_MS = 60_000;
const KEPT_TIMES = 30;

interface Taken {
  storage: Promise<Storage>;
  /** Until when; not before it is there. */
  until: number;
}

/** Of each database that this process has open. */
const taken = new WeakMap<object, Taken>();

/** `GET /storage` */
export function getStorage(_asked: Asked, { database, now }: ServerContext): Promise<Storage> {
  return readStorage(database.reader, now);
}

/** What the database takes; from a while ago, if it was asked for then. Whoever asks while it is looked up gets the same. */
export function readStorage(reader: Reader, now: () => number): Promise<Storage> {
  const known = taken.get(reader);
  if (known !== undefined && now() < known.until) return known.storage;
  const begunAt = now();
  const next: Taken = { storage: lookUp(reader, begunAt), until: Number.POSITIVE_INFINITY };
  taken.set(reader, next);
  next.storage.then(
    () => {
      next.until = now() + Math.max(KEPT_MS, (now() - begunAt) * KEPT_TIMES);
    },
    () => taken.delete(reader),
  );
  return next.storage;
}

async function lookUp(reader: Reader, at: number): Promise<Storage> {
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
  // what was written while it was looked at, and pages that say which others are free
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
  views: /^(sessions|agents|turns|tasks|obligations|activity|producers|producer_sessions|runner_generations)$/,
  logs: /^(log_lines|agent_logs|log_components|log_chunks)$/,
  search: /^(log|session)_search/,
  commands: /^(commands|asks|inbox|runners)$/,
  attachments: /^attachment/,
  audit: /^(audit|refusals)$/,
  quarantine: /^quarantine$/,
  insights: /^insights$/,
  webhooks: /^webhook_/,
  access: /^(credentials|members|access)$/,
};

function partOf(table: string): StoragePartName {
  return STORAGE_PARTS.find((name) => name !== 'rest' && TABLES[name].test(table)) ?? 'rest';
}
