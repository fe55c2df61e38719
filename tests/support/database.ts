import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Row } from '@libsql/client';
import { type Database, openDatabase } from '@/db/client';

export interface TestDatabase extends Database {
  /** For another process or a second opening of the same file. */
  url: string;
  /** Closes this opening of the file and opens it anew, as a restarted server would. */
  reopen(): Promise<TestDatabase>;
  /** Closes it and removes its folder. */
  dispose(): Promise<void>;
}

/** A migrated database in a folder of its own. A file, because `:memory:` has only one connection. */
export async function temporaryDatabase(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  return open(pathToFileURL(join(folder, 'interlude.db')).href, folder);
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
