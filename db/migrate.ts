import journal from './migrations/meta/_journal.json';
import type { Reader } from './reader';
import type { Writes } from './writes';

const CREATE_LEDGER =
  'CREATE TABLE IF NOT EXISTS __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)';

const NEWEST = 'SELECT max(created_at) AS newest FROM __drizzle_migrations';

/**
 * `ahead`: a newer version migrated the database and allows this one to use it, so instances can be replaced one by
 * one. `newer`: a newer version migrated it and forbids use by this one. `foreign`: older than the first of these
 * migrations. `unfinished`: a copy into the database was not completed.
 */
export type SchemaState = 'current' | 'behind' | 'ahead' | 'newer' | 'foreign' | 'unfinished';

/**
 * Start of the newest ledger row's hash while a copy is in progress. The row's time is later than any migration, and
 * `compatibility` has no row, so versions that don't know the marker refuse the database as `newer`.
 */
export const UNFINISHED = 'unfinished copy';

const times = journal.entries.map((entry) => entry.when);
/** Time of the newest migration that this version knows. */
export const NEWEST_MIGRATION = Math.max(...times);

/** Compares the database's schema with this version's. */
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

/** The newest migration that a version must know to use the database. Migrations that only add tables or columns keep it. */
async function oldestWriter(reader: Pick<Reader, 'execute'>): Promise<number> {
  const table = await reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'compatibility'");
  if (table.rows.length === 0) return Number.POSITIVE_INFINITY;
  const { rows } = await reader.execute('SELECT oldest_writer FROM compatibility');
  return Number(rows[0]?.oldest_writer ?? Number.POSITIVE_INFINITY);
}

/**
 * Migrates a database to this version's schema. Uses drizzle-kit's table, so its tools keep working.
 *
 * Ordering: migrations run in the journal's order, each with its ledger row, all in one transaction.
 * Failure: of two processes that start at the same time, the second waits for the first's transaction and finds nothing
 * to do.
 *
 * @param readMigration returns the SQL of a migration by its tag
 * @returns the number of migrations that ran
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
