import {
  type RetentionRules,
  STORAGE_PARTS,
  type Storage,
  type StoragePart,
  type StoragePartName,
  type StorageSizes,
} from '@interlude/protocol/storage';
import type { Reader } from '@/db/reader';
import type { TtlCache } from '@/db/ttl-cache';
import type { Asked } from '@/lib/server/access/asked';
import type { KeptAnswers } from '@/lib/server/access/server-context';
import { estimateTables } from './estimate-tables';
import { measureTables } from './measure-tables';

/** Numbers are kept this long, and as many times as long as it took to take them. */
const KEPT_MS = 60_000;
const KEPT_TIMES = 30;

interface StorageContext {
  database: { reader: Reader };
  now: () => number;
  kept: KeptAnswers;
  retention: RetentionRules;
}

/** `GET /storage` */
export async function getStorage(_asked: Asked, context: StorageContext): Promise<Storage> {
  const { database, now, kept, retention } = context;
  return { ...(await readStorage(database.reader, now, kept.storage)), retention };
}

/** What the database takes; from a while ago, if it was asked for then. */
export function readStorage(reader: Reader, now: () => number, kept: TtlCache<StorageSizes>): Promise<StorageSizes> {
  return kept.get(
    now,
    () => lookUp(reader, now()),
    (_, tookMs) => Math.max(KEPT_MS, tookMs * KEPT_TIMES),
  );
}

async function lookUp(reader: Reader, at: number): Promise<StorageSizes> {
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
