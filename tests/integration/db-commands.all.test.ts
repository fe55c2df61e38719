import { statSync } from 'node:fs';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { runCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { dumpDatabase } from '../support/database';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import {
  dumpOf,
  expectSameSearch,
  expectTakenOver,
  PopulatedDatabase,
  withDatabase,
} from '../support/populated-database';
import { tempDir } from '../support/temp-dir';

let used: PopulatedDatabase;
beforeAll(async () => {
  used = await PopulatedDatabase.start();
});
beforeEach(() => used.settle());
afterAll(() => used.stage.close());

const cli = (...args: string[]) => callCli(['db', ...args], used.env);

test('one of two backups to the same place completes, the other fails, and leftovers are removed', async () => {
  const folder = await tempDir();
  const file = join(folder, 'copy.db');
  const left = [`${file}.1.unfinished`, `${file}.1.unfinished-wal`, `${file}.2.unfinished`];
  for (const path of left) await writeFile(path, '');
  const yesterday = Date.now() / 1000 - 86_400;
  for (const path of left.slice(0, 2)) await utimes(path, yesterday, yesterday);
  const both = await Promise.all([1, 2].map(() => runCli(['db', 'backup', file], used.env)));
  expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1]);
  expect(both.find(({ exitCode }) => exitCode === 1)?.stderr).toMatch(/already exists/);
  expect((await readdir(folder)).sort()).toEqual(['copy.db', 'copy.db.2.unfinished']);
  expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
});

describe('vacuum', () => {
  test('frees pages in steps without refusing a writer', async () => {
    const own = await PopulatedDatabase.start();
    const { database } = own.stage.parts;
    const pad = 'x'.repeat(100_000);
    const custom = (n: number) => ({ type: 'CUSTOM', name: 'pad', value: `${n}${pad}` });
    for (let n = 0; n < 20; n += 1) {
      const records = Array.from(
        { length: 10 },
        (_, index) =>
          ({
            kind: 'event',
            agentId: 'worker',
            sessionId: 'worker-a',
            occurredAt: 1,
            event: custom(n * 10 + index),
          }) as const,
      );
      await own.send(records);
    }
    const remove = (which: string) =>
      database.writes.run((transaction) =>
        transaction.execute(`DELETE FROM events WHERE position IN (SELECT position FROM events WHERE ${which})`),
      );
    await remove("name = 'pad' LIMIT 160");
    await checkpoint(database);
    const before = statSync(own.file).size;
    const free = await freePages(database);
    expect(free).toBeGreaterThan(3_000);
    let isDone = false;
    const ended = runCli(['db', 'vacuum'], own.env).finally(() => {
      isDone = true;
    });
    // A refused write would throw.
    while (!isDone) {
      await own.work(1);
      // The vacuum also returns pages that are freed while it runs, but not after its last piece.
      const left = (await freePages(database)) / free;
      if (left < 0.9 && left > 0.5) await remove("name = 'pad'");
    }
    const { exitCode, stdout } = await ended;
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/[\d.]+ MiB before, [\d.]+ MiB now/),
    });
    await checkpoint(database);
    // Writers reused some of the freed pages, more of them on a slow machine.
    expect(await freePages(database)).toBeLessThan(free / 10);
    expect(statSync(own.file).size).toBeLessThan(before);
    expect(await callCli(['db', 'check'], own.env)).toMatchObject({ exitCode: 0 });
    await own.stage.close();
  });

  test('--full makes writers wait, and loses none of their rows', async () => {
    const own = await PopulatedDatabase.start();
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

async function freePages({ reader }: Database): Promise<number> {
  return Number((await reader.execute('PRAGMA freelist_count')).rows[0]?.freelist_count);
}

async function checkpoint({ reader }: Database): Promise<void> {
  await reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
}

test('copy keeps a dashboard on the target file from writing until it is complete', async () => {
  await expectTakenOver(used, join(await tempDir(), 'live.db'));
});

describe.skipIf('missing' in ensureLibsqlServer())('with a libSQL server', () => {
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  beforeAll(async () => {
    libsql = await startLibsqlServer();
    await used.settle();
    expect(await cli('copy', used.file, libsql.url)).toMatchObject({ exitCode: 0 });
  });
  afterAll(() => libsql?.stop());

  test('copies there and back to an equal file', async () => {
    const rows = await dumpDatabase(used.stage.parts.database);
    expect(await dumpOf(libsql.url)).toEqual(rows);
    await expectSameSearch(used, libsql.url);
    const file = join(await tempDir(), 'back.db');
    expect(await cli('copy', libsql.url, file)).toMatchObject({ exitCode: 0 });
    expect(await dumpOf(file)).toEqual(rows);
    await expectSameSearch(used, file);
  });

  test('copies to another server row by row', async () => {
    const other = await startLibsqlServer();
    try {
      expect(await cli('copy', libsql.url, other.url)).toMatchObject({ exitCode: 0 });
      const [there, here] = [await dumpOf(other.url), await dumpOf(libsql.url)];
      // Writers at a server leave commit rows for each other.
      expect(there).toEqual({ ...here, commits: [], touched: [] });
    } finally {
      await other.stop();
    }
  });

  test('keeps a dashboard from writing to a copy’s target until it is complete', async () => {
    const other = await startLibsqlServer();
    await expectTakenOver(used, other.url).finally(() => other.stop());
  });

  test('backs up one moment while a dashboard writes', async () => {
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
    const [parts, counted] = await withDatabase(file, async ({ reader }) => {
      const { rows } = await reader.execute(
        `SELECT count(*) AS parts, max(lines) AS newest, (SELECT position FROM counter) AS position
          FROM log_components WHERE agent_id = 'nobody'`,
      );
      return [Number(rows[0]?.parts), [rows[0]?.newest, rows[0]?.position]];
    });
    expect(parts).toBeGreaterThanOrEqual(1);
    expect(parts).toBeLessThanOrEqual(written + 1);
    // A backup of two moments would hold one row of a commit without the other.
    expect(counted[0]).toBe(counted[1]);
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
    await remote.close();
  });

  test('passes check, and refuses vacuum with the alternative', async () => {
    const env = { ...used.env, INTERLUDE_DATABASE_URL: libsql.url };
    expect(await callCli(['db', 'check'], env)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/is sound/),
    });
    const vacuum = await callCli(['db', 'vacuum'], env);
    expect(vacuum).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/can.t be vacuumed .*db copy/) });
  });

  test('reports an unreachable server on one line, without its token', async () => {
    const file = join(await tempDir(), 'token');
    await writeFile(file, 'a-secret-token\n');
    const { exitCode, stderr } = await cli('check', '--database', 'http://127.0.0.1:9', '--from-token-file', file);
    expect(exitCode).toBe(1);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('a-secret-token');
  });
});
