import { statSync } from 'node:fs';
import { readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { LocalConnection } from '@/db/local-connection';
import { pause } from '@/db/next-turn';
import { runCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { dumpDatabase } from '../support/database';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { tempDir } from '../support/temp-dir';
import { WellUsed } from '../support/well-used-database';

let used: WellUsed;
beforeAll(async () => {
  used = await WellUsed.start();
});
afterAll(() => used.stage.close());

const cli = (...args: string[]) => callCli(['db', ...args], used.env);

async function opened<T>(place: string, work: (database: Database) => Promise<T>): Promise<T> {
  const url = /^https?:/.test(place) ? place : pathToFileURL(place).href;
  const database = await openDatabase({ url, migrates: false });
  return work(database).finally(() => database.close());
}

const dumpOf = (place: string) => opened(place, dumpDatabase);

/** As somebody else who has the file at hand. */
async function run(file: string, ...statements: string[]): Promise<void> {
  const connection = new LocalConnection(file, 5_000);
  for (const sql of statements) await connection.run(sql, 'loop');
  connection.close();
}

test('without a command, or with --help, it says which there are', async () => {
  const none = await cli();
  expect(none).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('say backup, check, vacuum or copy') });
  const help = await cli('--help');
  expect(help.exitCode).toBe(0);
  for (const name of ['backup FILE', 'check', 'vacuum', 'copy FROM TO']) expect(help.stdout).toContain(name);
  expect(await cli('backup')).toMatchObject({ exitCode: 2 });
  expect(await cli('check', '--full')).toMatchObject({ exitCode: 2 });
});

describe('backup', () => {
  test('has everything that was acknowledged when it began, while writers go on', async () => {
    const file = join(await tempDir(), 'copy.db');
    const acked = await used.work(1);
    let isDone = false;
    const ended = runCli(['db', 'backup', file], used.env).finally(() => {
      isDone = true;
    });
    let writes = 0;
    for (; !isDone; writes += 1) await used.work(1);
    const { exitCode, stdout } = await ended;
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/copy\.db: [\d.]+ [KM]iB in [\d.]+ m?s/),
    });
    expect(writes).toBeGreaterThan(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dirname(file))).toEqual(['copy.db']);
    const kept = await opened(file, async ({ reader }) => {
      const { rows } = await reader.execute('SELECT last_seq FROM producers');
      return Number(rows[0]?.last_seq);
    });
    expect(kept).toBeGreaterThanOrEqual(acked);
    const now = await dumpDatabase(used.stage.parts.database);
    expect(now.turns?.length).toBeGreaterThan((await dumpOf(file)).turns?.length ?? Number.POSITIVE_INFINITY);
  });

  test('is row by row what the database is, and sound', async () => {
    const file = join(await tempDir(), 'copy.db');
    expect(await cli('backup', file)).toMatchObject({ exitCode: 0 });
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('writes over nothing, and says where there is nothing to copy', async () => {
    const file = join(await tempDir(), 'mine.txt');
    await writeFile(file, 'mine');
    expect(await cli('backup', file)).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/is there already/) });
    expect(await readFile(file, 'utf8')).toBe('mine');
    const none = join(await tempDir(), 'none.db');
    const answer = await cli('backup', `${none}.copy`, '--database', none);
    expect(answer).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`there is no database at ${none}`) });
    expect(await readdir(dirname(none))).toEqual([]);
    const nowhere = join(none, 'x', 'copy.db');
    expect(await cli('backup', nowhere)).toMatchObject({ exitCode: 1, stderr: expect.not.stringContaining(' at ') });
  });
});

test('of two backups to the same place at once one is made whole, and what others left is removed', async () => {
  const folder = await tempDir();
  const file = join(folder, 'copy.db');
  const left = [`${file}.1.unfinished`, `${file}.1.unfinished-wal`, `${file}.2.unfinished`];
  for (const path of left) await writeFile(path, '');
  const yesterday = Date.now() / 1000 - 86_400;
  for (const path of left.slice(0, 2)) await utimes(path, yesterday, yesterday);
  const both = await Promise.all([1, 2].map(() => runCli(['db', 'backup', file], used.env)));
  expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1]);
  expect(both.find(({ exitCode }) => exitCode === 1)?.stderr).toMatch(/is there already/);
  expect((await readdir(folder)).sort()).toEqual(['copy.db', 'copy.db.2.unfinished']);
  expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
});

describe('check', () => {
  test('finds nothing in a database in use', async () => {
    const { exitCode, stdout } = await cli('check');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/is sound: \d+ tables/) });
  });

  test.each([
    ['counter', 'UPDATE counter SET position = 3'],
    ['producers', 'UPDATE producers SET last_seq = 2'],
    ['sessions', "DELETE FROM agents WHERE id = 'worker'"],
    ['turns of events', "DELETE FROM turns WHERE id = 'worker-a-2'"],
    ['turns of tasks', "DELETE FROM turns WHERE id = 'worker-a-2'"],
    ['tasks', "PRAGMA recursive_triggers = 0; DELETE FROM sessions WHERE id = 'worker-b'"],
    [
      'positions',
      'UPDATE log_lines SET position = (SELECT min(position) FROM events) WHERE position = (SELECT max(position) FROM log_lines)',
    ],
    ['log lines', 'UPDATE agent_logs SET last_line = 1'],
    ['log index', 'DELETE FROM log_search_docsize'],
    ['attachments', 'DELETE FROM attachment_parts'],
    ['audit', "DROP TRIGGER audit_is_kept; UPDATE audit SET actor = 'nobody' WHERE number = 1"],
    ['schema', "INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9e15); DELETE FROM compatibility"],
  ])('finds what is wrong with %s, says so on a line, and fails', async (name, sql) => {
    const file = join(await tempDir(), 'copy.db');
    await cli('backup', file);
    await run(file, sql);
    const { exitCode, stdout } = await cli('check', '--database', file);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(new RegExp(`^${name}: .+; .+$|^audit: .+\\. .+$`, 'm'));
  });

  test('finds pages that are spoilt', async () => {
    const file = join(await tempDir(), 'copy.db');
    await cli('backup', file);
    const bytes = await readFile(file);
    bytes.fill(0xa5, bytes.length / 2, bytes.length / 2 + 64 * 1024);
    await writeFile(file, bytes);
    const { exitCode, stdout, stderr } = await cli('check', '--database', file);
    expect({ exitCode, told: stdout + stderr }).toEqual({ exitCode: 1, told: expect.stringMatching(/backup|copy/) });
  });

  test('and backup say of what is no database that it is none', async () => {
    const file = join(await tempDir(), 'text.db');
    await writeFile(
      file,
      'no database at all, but longer than a header of SQLite is: a hundred bytes and some more of them',
    );
    for (const args of [['check'], ['vacuum'], ['backup', `${file}.copy`]]) {
      const answer = await cli(...args, '--database', file);
      expect(answer).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/is not a database/) });
    }
  });
});

describe('vacuum', () => {
  test('gives space back in pieces while writers go on, and none of them is refused', async () => {
    const own = await WellUsed.start();
    const { database } = own.stage.parts;
    const pad = 'x'.repeat(100_000);
    const custom = (n: number) => ({ type: 'CUSTOM', name: 'pad', value: `${n}${pad}` });
    for (let n = 0; n < 20; n += 1) {
      const records = Array.from(
        { length: 10 },
        (_, at) =>
          ({
            kind: 'event',
            agentId: 'worker',
            sessionId: 'worker-a',
            occurredAt: 1,
            event: custom(n * 10 + at),
          }) as const,
      );
      await own.send(records);
    }
    await database.writes.run((transaction) => transaction.execute("DELETE FROM events WHERE name = 'pad'"));
    await checkpoint(database);
    const before = statSync(own.file).size;
    const free = await freePages(database);
    expect(free).toBeGreaterThan(4_000);
    let isDone = false;
    const ended = runCli(['db', 'vacuum'], own.env).finally(() => {
      isDone = true;
    });
    // each of these would throw if it were refused
    while (!isDone) await own.work(1);
    const { exitCode, stdout } = await ended;
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/[\d.]+ MiB before, [\d.]+ MiB now/),
    });
    await checkpoint(database);
    // what was written meanwhile took some of it for itself, more on a slow machine
    expect(await freePages(database)).toBeLessThan(free / 10);
    expect(statSync(own.file).size).toBeLessThan(before);
    expect(await callCli(['db', 'check'], own.env)).toMatchObject({ exitCode: 0 });
    await own.stage.close();
  });

  test('of a file from before that was possible rewrites it when told to, after which it is', async () => {
    const file = join(await tempDir(), 'old.db');
    await cli('backup', file);
    await run(file, 'PRAGMA journal_mode = DELETE', 'PRAGMA auto_vacuum = NONE', 'VACUUM', 'PRAGMA journal_mode = WAL');
    const refused = await cli('vacuum', '--database', file);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('vacuum --full') });
    const rows = await dumpOf(file);
    expect(await cli('vacuum', '--full', '--database', file)).toMatchObject({ exitCode: 0 });
    expect(await cli('vacuum', '--database', file)).toMatchObject({ exitCode: 0 });
    expect(await dumpOf(file)).toEqual(rows);
  });

  test('--full lets writers wait, and loses nothing', async () => {
    const own = await WellUsed.start();
    let isDone = false;
    const ended = runCli(['db', 'vacuum', '--full'], own.env).finally(() => {
      isDone = true;
    });
    let acked = 0;
    while (!isDone) acked = await own.work(1);
    expect((await ended).exitCode).toBe(0);
    const { rows } = await own.stage.parts.database.reader.execute('SELECT last_seq FROM producers');
    expect(Number(rows[0]?.last_seq)).toBe(acked);
    expect(await callCli(['db', 'check'], own.env)).toMatchObject({ exitCode: 0 });
    await own.stage.close();
  });
});

test.each(['vacuum', 'vacuum --full'])('%s waits for another process that writes', async (command) => {
  const file = join(await tempDir(), 'held.db');
  await cli('backup', file);
  const other = new LocalConnection(file, 5_000);
  await other.run('BEGIN IMMEDIATE', 'loop');
  const ended = cli(...command.split(' '), '--database', file);
  // longer than SQLite waits, and shorter than a person would
  await pause(500);
  await other.run('COMMIT', 'loop');
  expect(await ended).toMatchObject({ exitCode: 0 });
  other.close();
});

async function freePages({ reader }: Database): Promise<number> {
  return Number((await reader.execute('PRAGMA freelist_count')).rows[0]?.freelist_count);
}

async function checkpoint({ reader }: Database): Promise<void> {
  await reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
}

describe('copy between files', () => {
  test('has every row, what is searched, and what the database does by itself', async () => {
    const file = join(await tempDir(), 'copy.db');
    const answer = await cli('copy', used.file, file);
    expect(answer).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/[\d,]+ rows of \d+ tables/) });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    await searchesWell(file);
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
    expect(await cli('copy', used.file, file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/is not empty/),
    });
  });

  test('that was cut off is refused by a dashboard, and begun anew by another', async () => {
    const file = join(await tempDir(), 'copy.db');
    const spoilt = join(await tempDir(), 'spoilt.db');
    await cli('backup', spoilt);
    // a row that no reader can hold ends the copy in the middle of it
    await run(spoilt, `UPDATE turns SET started_at = 9223372036854775807 WHERE rowid = (SELECT max(rowid) FROM turns)`);
    expect((await cli('copy', spoilt, file)).exitCode).toBe(1);
    await expect(openDatabase({ url: pathToFileURL(file).href })).rejects.toThrow(/a copy that was cut off/);
    expect(await cli('check', '--database', file)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/^schema: .*cut off/m),
    });
    expect(await cli('copy', file, `${file}.2`)).toMatchObject({ exitCode: 1 });
    const again = await cli('copy', used.file, file);
    expect(again).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/begins anew/) });
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    await searchesWell(file);
  });

  test('into one that a dashboard runs on keeps it from writing until the copy is whole', async () => {
    await isTakenOver(join(await tempDir(), 'live.db'));
  });
});

/** @param place of nothing yet */
async function isTakenOver(place: string): Promise<void> {
  const url = /^https?:/.test(place) ? place : pathToFileURL(place).href;
  const live = await openDatabase({ url, migrates: true });
  const write = () => live.writes.run((transaction) => transaction.execute('UPDATE counter SET position = position'));
  await write();
  const spoilt = join(await tempDir(), 'spoilt.db');
  await cli('backup', spoilt);
  await run(spoilt, 'UPDATE turns SET started_at = 9223372036854775807 WHERE rowid = (SELECT max(rowid) FROM turns)');
  expect((await cli('copy', spoilt, place)).exitCode).toBe(1);
  await expect(write()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/copies into it/),
  });
  expect(await cli('copy', used.file, place)).toMatchObject({ exitCode: 0 });
  await write();
  expect(Number((await live.reader.execute('SELECT count(*) AS count FROM events')).rows[0]?.count)).toBeGreaterThan(0);
  await live.close();
}

/** A copy is searched as the original is, also once more is written to it. */
async function searchesWell(place: string): Promise<void> {
  await opened(place, async (database) => {
    const integrity = ['log_search', 'session_search'].map(
      (name) => `INSERT INTO ${name} (${name}) VALUES ('integrity-check')`,
    );
    await database.writes.run((transaction) => transaction.batch(integrity));
    const found = async ({ reader }: Database) => {
      const search = (sql: string) => reader.execute(sql).then(({ rows }) => rows.map((row) => ({ ...row })));
      return Promise.all([
        search(
          `SELECT CAST(rowid AS TEXT) AS id FROM log_search WHERE log_search MATCH '"nee" AND "edl"' ORDER BY rowid`,
        ),
        search(`SELECT rowid AS id FROM session_search WHERE session_search MATCH '"wor" AND "ork"' ORDER BY rowid`),
      ]);
    };
    const [lines, sessions] = await found(database);
    expect([lines, sessions]).toEqual(await found(used.stage.parts.database));
    expect([lines?.length, sessions?.length].every((count) => (count ?? 0) > 0)).toBe(true);
    const triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name";
    const named = async ({ reader }: Database) => (await reader.execute(triggers)).rows.map((row) => ({ ...row }));
    expect(await named(database)).toEqual(await named(used.stage.parts.database));
  });
}

describe.skipIf('missing' in ensureLibsqlServer())('with a libSQL server', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  beforeAll(async () => {
    libsql = await startLibsqlServer();
    expect(await cli('copy', used.file, libsql.url)).toMatchObject({ exitCode: 0 });
  });
  afterAll(() => libsql?.stop());

  test('a copy to it and back is row by row what the file is', async () => {
    const rows = await dumpDatabase(used.stage.parts.database);
    expect(await dumpOf(libsql.url)).toEqual(rows);
    await searchesWell(libsql.url);
    const file = join(await tempDir(), 'back.db');
    expect(await cli('copy', libsql.url, file)).toMatchObject({ exitCode: 0 });
    expect(await dumpOf(file)).toEqual(rows);
    await searchesWell(file);
  });

  test('a copy from one to another is the same', async () => {
    const other = await startLibsqlServer();
    try {
      expect(await cli('copy', libsql.url, other.url)).toMatchObject({ exitCode: 0 });
      const [there, here] = [await dumpOf(other.url), await dumpOf(libsql.url)];
      // what those who write to a server leave for each other
      expect(there).toEqual({ ...here, commits: [], touched: [] });
    } finally {
      await other.stop();
    }
  });

  test('a copy into one that a dashboard runs on keeps it from writing until the copy is whole', async () => {
    const other = await startLibsqlServer();
    await isTakenOver(other.url).finally(() => other.stop());
  });

  test('a backup of it is a database of one moment, while a dashboard writes to it', async () => {
    const database = { INTERLUDE_DATABASE_URL: libsql.url };
    const file = join(await tempDir(), 'server.db');
    const remote = await openDatabase({ url: libsql.url });
    const write = (n: number) =>
      remote.writes.run(async (transaction) => {
        const position = (await transaction.position()) + 1;
        await transaction.moveTo(position);
        await transaction.execute({
          sql: "INSERT INTO log_components (agent_id, component, lines) VALUES ('nobody', ?, ?)",
          args: [`part ${n}`, position],
        });
      });
    await write(0);
    let isDone = false;
    const ended = runCli(['db', 'backup', file], { ...used.env, ...database }).finally(() => {
      isDone = true;
    });
    let written = 0;
    for (; !isDone; written += 1) await write(written + 1);
    expect(await ended).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/server\.db: /) });
    expect(written).toBeGreaterThan(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const [parts, counted] = await opened(file, async ({ reader }) => {
      const { rows } = await reader.execute(
        `SELECT count(*) AS parts, max(lines) AS newest, (SELECT position FROM counter) AS position
          FROM log_components WHERE agent_id = 'nobody'`,
      );
      return [Number(rows[0]?.parts), [rows[0]?.newest, rows[0]?.position]];
    });
    expect(parts).toBeGreaterThanOrEqual(1);
    expect(parts).toBeLessThanOrEqual(written + 1);
    // of one moment: nothing of a commit without the rest of it
    expect(counted[0]).toBe(counted[1]);
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
    await remote.close();
  });

  test('check looks at it, and vacuum says what can be done instead', async () => {
    const env = { ...used.env, INTERLUDE_DATABASE_URL: libsql.url };
    expect(await callCli(['db', 'check'], env)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/is sound/),
    });
    const vacuum = await callCli(['db', 'vacuum'], env);
    expect(vacuum).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/rewrites no database .*db copy/) });
  });

  test('one that is not there is told on one line, without its token', async () => {
    const file = join(await tempDir(), 'token');
    await writeFile(file, 'a-secret-token\n');
    const { exitCode, stderr } = await cli('check', '--database', 'http://127.0.0.1:9', '--from-token-file', file);
    expect(exitCode).toBe(1);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('a-secret-token');
  });
});
