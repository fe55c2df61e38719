import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient, type Row } from '@libsql/client';
import { type Database, openDatabase } from '@/db/client';
import { createMigratedFile } from './migrated-file';

export interface TestDatabase extends Database {
  /** For another process or a second opening of the same file. */
  url: string;
  /** Closes this opening of the file and opens it anew, as a restarted server would. */
  reopen(): Promise<TestDatabase>;
  /** Closes it and removes its folder. */
  dispose(): Promise<void>;
}

/**
 * A migrated database in a folder of its own. A file, because `:memory:` has only one connection. Where the tests run over
 * libSQL servers, the one of this worker, emptied: one at a time.
 */
export async function temporaryDatabase(): Promise<TestDatabase> {
  const server = process.env.INTERLUDE_TEST_SERVERS?.split(' ')[Number(process.env.VITEST_POOL_ID) - 1];
  if (server !== undefined) {
    await empty(server);
    return databaseAt(server);
  }
  const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  const path = join(folder, 'interlude.db');
  await createMigratedFile(path);
  return open(pathToFileURL(path).href, folder);
}

async function open(url: string, folder: string): Promise<TestDatabase> {
  const database = await openDatabase({ url });
  return {
    ...database,
    url,
    reopen: async () => {
      await database.close();
      return open(url, folder);
    },
    dispose: async () => {
      await database.close();
      // a look through a damaged file that was under way may still put files beside it
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** The one of a libSQL server, migrated. */
export async function databaseAt(url: string): Promise<TestDatabase> {
  const database = await openDatabase({ url, migrates: true });
  return {
    ...database,
    url,
    reopen: async () => {
      await database.close();
      return databaseAt(url);
    },
    dispose: () => database.close(),
  };
}

async function empty(url: string): Promise<void> {
  const client = createClient({ url });
  const { rows } = await client.execute(
    `SELECT m.name FROM sqlite_master AS m JOIN pragma_table_list AS t ON t.name = m.name
      WHERE t.type IN ('table', 'virtual') AND t.schema = 'main' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!'
        AND m.name NOT LIKE 'libsql!_%' ESCAPE '!'`,
  );
  await client.batch(
    rows.map(({ name }) => `DROP TABLE "${name}"`),
    'write',
  );
  client.close();
}

/**
 * Every row of every table, to tell whether anything at all was written. Of the full-text table, what it keeps. When each
 * credential was last used is left out: that is noted by the minute, whatever is asked meanwhile. So is who does what is
 * due.
 */
export async function dumpDatabase(database: Database): Promise<Record<string, unknown[]>> {
  const tables = await database.reader.execute(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('log_search', 'leases') AND name NOT LIKE 'session_search%' ORDER BY name`,
  );
  const names = tables.rows.map((row) => String(row.name));
  const contents = await database.reader.batch(
    // the index of a search table has numbers that JavaScript can't hold
    names.map(
      (name) =>
        `SELECT ${name === 'log_search_data' ? 'CAST(id AS TEXT) AS id, block' : '*'} FROM ${name} ORDER BY 1, 2`,
    ),
    'read',
  );
  return Object.fromEntries(names.map((name, index) => [name, contents[index]?.rows.map(keptOf) ?? []]));
}

function keptOf({ last_used_at: _, ...row }: Row): Record<string, unknown> {
  return row;
}
