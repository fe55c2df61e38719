import journal from './migrations/meta/_journal.json';
import type { Reader } from './reader';
import type { Writes } from './writes';

/**
 * Brings a database to this version's schema. Keeps the table drizzle-kit knows, so that its tools go on working.
 *
 * Ordering: migrations run in the journal's order, each with its bookkeeping row, all in one transaction.
 * Failure: two processes may start at once; the second waits for the first's transaction and then finds nothing to do.
 */
const CREATE_LEDGER =
  'CREATE TABLE IF NOT EXISTS __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)';

const NEWEST = 'SELECT max(created_at) AS newest FROM __drizzle_migrations';

/**
 * `ahead`: a newer version has migrated it, and says that this one may go on using it: old and new instances run side by
 * side while they are replaced. `newer`: it says that this one may not. `foreign`: made before these migrations began, so
 * none of them can lead from there. `unfinished`: something that was being copied into it never came to its end.
 */
export type SchemaState = 'current' | 'behind' | 'ahead' | 'newer' | 'foreign' | 'unfinished';

/**
 * How the hash of the ledger's newest row begins while a copy is under way. Its time is later than that of any migration,
 * and there is no row in `compatibility`: versions that don't know of this refuse the database as `newer`.
 */
export const UNFINISHED = 'unfinished copy';

const times = journal.entries.map((entry) => entry.when);
/** The time of the newest migration that this version knows. */
export const NEWEST_MIGRATION = Math.max(...times);

/** Where the database's schema stands beside this version's. */
export async function schemaState(reader: Pick<Reader, 'execute'>): Promise<SchemaState> {
  const ledger = await reader.execute("SELECT 1 FROM sqlite_master WHERE name = '__drizzle_migrations'");
  if (ledger.rows.length === 0) return 'behind';
  const applied = await reader.execute(NEWEST);
  const newest = applied.rows[0]?.newest ?? null;
  if (newest === null) return 'behind';
  if (Number(newest) === NEWEST_MIGRATION) return 'current';
  if (Number(newest) > NEWEST_MIGRATION && (await isUnfinished(reader))) return 'unfinished';
  if (Number(newest) > NEWEST_MIGRATION) return (await oldestWriter(reader)) <= NEWEST_MIGRATION ? 'ahead' : 'newer';
  return Number(newest) < Math.min(...times) ? 'foreign' : 'behind';
}

async function isUnfinished(reader: Pick<Reader, 'execute'>): Promise<boolean> {
  const { rows } = await reader.execute({
    sql: 'SELECT 1 FROM __drizzle_migrations WHERE hash LIKE ? LIMIT 1',
    args: [`${UNFINISHED}%`],
  });
  return rows.length > 0;
}

/**
 * The newest migration that a version must know to use the database. A migration that leaves tables and columns as they are
 * and only adds to them leaves this as it is, too; any other sets it to itself.
 */
async function oldestWriter(reader: Pick<Reader, 'execute'>): Promise<number> {
  const table = await reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'compatibility'");
  if (table.rows.length === 0) return Number.POSITIVE_INFINITY;
  const { rows } = await reader.execute('SELECT oldest_writer FROM compatibility');
  return Number(rows[0]?.oldest_writer ?? Number.POSITIVE_INFINITY);
}

/**
 * @param readMigration gives the SQL of one migration file by its tag
 * @returns how many migrations ran
 */
export async function migrate(writes: Writes, readMigration: (tag: string) => Promise<string>): Promise<number> {
  const files = await Promise.all(
    journal.entries.map(async ({ tag, when }) => {
      const sql = await readMigration(tag);
      return { when, sql, hash: await sha256(sql) };
    }),
  );
  return writes.run(async (transaction) => {
    await transaction.execute(CREATE_LEDGER);
    const applied = await transaction.execute(NEWEST);
    const newest = Number(applied.rows[0]?.newest ?? 0);
    const missing = files.filter((file) => file.when > newest);
    for (const { sql, hash, when } of missing) {
      await transaction.batch([
        ...sql.split('--> statement-breakpoint'),
        { sql: 'INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)', args: [hash, when] },
      ]);
    }
    return missing.length;
  });
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
