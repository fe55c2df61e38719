import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { createClient, type InStatement, type Row } from '@libsql/client';
import { type Database, openDatabase } from '@/db/client';
import type { ResultRows } from '@/db/reader';
import type { WriteTransaction } from '@/db/writes';

export interface TestDatabase extends Database {
  /** For another process or a second connection to the same file. */
  url: string;
  /** Closes and reopens the file, as a restarted server does. */
  reopen(): Promise<TestDatabase>;
  /** Closes the database and removes its folder. */
  dispose(): Promise<void>;
}

/**
 * Creates a migrated database in its own folder. A file, because `:memory:` allows only one connection. If the tests
 * run over libSQL servers, returns this worker's server, emptied; only one at a time.
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
      // a running integrity check of a damaged file may still write files beside it
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** Opens and migrates the database of a libSQL server. */
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
 * Returns every row of every table, to detect writes. Excludes leases, the last use of credentials (updated once a
 * minute) and rows of the full-text index that hold no content.
 */
export async function dumpDatabase(database: Database): Promise<Record<string, unknown[]>> {
  const tables = await database.reader.execute(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('log_search', 'leases') AND name NOT LIKE 'session_search%' ORDER BY name`,
  );
  const names = tables.rows.map((row) => String(row.name));
  const contents = await database.reader.batch(
    // the index of a search table has integers beyond JavaScript's range
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

let migratedFile: Promise<Uint8Array> | null = null;

/**
 * Creates an empty database file with the current schema. Migrating costs eight times as much as writing the file, so
 * each process migrates only once.
 */
export async function createMigratedFile(path: string): Promise<void> {
  migratedFile ??= migrateOne();
  await writeFile(path, await migratedFile, { mode: 0o600, flag: 'wx' });
}

async function migrateOne(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  try {
    const path = join(folder, 'interlude.db');
    // Closing checkpoints the write-ahead log into the file.
    await (await openDatabase({ url: pathToFileURL(path).href })).close();
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Rows inserted directly into the log, for tests of reads. Positions follow the order of rows. */
type TestRow =
  | { event: AgUiEvent; sessionId?: string }
  | { log: string; agentId?: string }
  | { session: string; title?: string }
  | { task: string; description?: string };

/** Commits rows in one transaction, as ingest does. @returns their positions */
export function insertRows(database: Database, rows: readonly TestRow[]): Promise<number[]> {
  return database.writes.run(async (transaction) => {
    const { rows: counter } = await transaction.execute('SELECT position FROM counter');
    const first = Number(counter[0]?.position ?? 0) + 1;
    const positions = rows.map((_, index) => first + index);
    await transaction.batch(rows.map((row, index) => insertion(row, first + index)));
    await transaction.execute({
      sql: 'INSERT INTO counter (id, position) VALUES (1, ?1) ON CONFLICT DO UPDATE SET position = ?1',
      args: [first + rows.length - 1],
    });
    return positions;
  });
}

/** Creates `count` text deltas of one session. */
export function deltas(count: number, sessionId = 's1', text = 'x'): TestRow[] {
  return Array.from({ length: count }, () => ({
    sessionId,
    event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: text },
  }));
}

function insertion(row: TestRow, position: number): InStatement {
  if ('event' in row) {
    return {
      sql: `INSERT INTO events (position, session_id, agent_id, producer_id, epoch, seq, occurred_at, received_at, type, entity_id, payload)
        VALUES (?, ?, 'a1', 'p1', 1, ?, 1000, 1001, ?, ?, ?)`,
      args: [
        position,
        row.sessionId ?? 's1',
        position,
        row.event.type,
        typeof row.event.messageId === 'string' ? row.event.messageId : null,
        JSON.stringify(row.event),
      ],
    };
  }
  if ('log' in row) {
    return {
      sql: `INSERT INTO log_lines (position, agent_id, occurred_at, received_at, level, component, message, line)
        VALUES (?1, ?2, 1000, 1001, 'info', 'test', ?3,
          (SELECT count(*) + 1 FROM log_lines WHERE agent_id = ?2))`,
      args: [position, row.agentId ?? 'a1', row.log],
    };
  }
  if ('session' in row) {
    return {
      sql: `INSERT OR REPLACE INTO sessions (id, agent_id, state, last_event_at, body, places, updated_position)
        VALUES (?, 'a1', 'idle', 1000, ?, '{}', ?)`,
      args: [row.session, JSON.stringify({ title: row.title ?? null }), position],
    };
  }
  return {
    sql: `INSERT INTO tasks (session_id, position, id, agent_id, status, body, updated_position)
      VALUES ('s1', ?, ?, 'a1', 'running', ?, ?)`,
    args: [position, row.task, JSON.stringify({ id: row.task, description: row.description ?? '' }), position],
  };
}

/** The largest arguments and result of a write statement. Both are copied on the event loop. */
export interface LargestStatement {
  argumentLength: number;
  rows: number;
}

/** Tracks all further writes of a database. */
export function largestStatement({ writes }: Database): LargestStatement {
  const largest: LargestStatement = { argumentLength: 0, rows: 0 };
  const see = (statements: InStatement[], results: ResultRows[]) => {
    for (const statement of statements) {
      const args = typeof statement === 'string' ? [] : Object.values(statement.args ?? []);
      const length = args.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
      largest.argumentLength = Math.max(largest.argumentLength, length);
    }
    for (const { rows } of results) largest.rows = Math.max(largest.rows, rows.length);
  };
  const watched = (transaction: WriteTransaction): WriteTransaction => ({
    ...transaction,
    execute: async (statement) => {
      const result = await transaction.execute(statement);
      see([statement], [result]);
      return result;
    },
    batch: async (statements) => {
      const results = await transaction.batch(statements);
      see(statements, results);
      return results;
    },
  });
  const run = writes.run.bind(writes);
  writes.run = (job, about) => run((transaction) => job(watched(transaction)), about);
  return largest;
}

const driver = createRequire(import.meta.url).resolve('libsql');
const VISIT = `
  const Database = require(process.argv[1]);
  const visitor = new Database(process.argv[2]);
  visitor.prepare('SELECT count(*) FROM sqlite_master').all();
  visitor.close();
`;

/**
 * Opens and closes a database file in another process. If SQLite thinks that this was the last connection, it removes
 * the write-ahead log: a server whose lock was lost then loses its log.
 */
export function visitDatabase(path: string): void {
  execFileSync(process.execPath, ['-e', VISIT, driver, path]);
}
