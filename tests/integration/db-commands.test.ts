import { copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { LocalConnection } from '@/db/local-connection';
import { pause } from '@/db/yield-to-loop';
import { runCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { dumpDatabase } from '../support/database';
import {
  dumpOf,
  expectSameSearch,
  PopulatedDatabase,
  run,
  SPOILS_A_ROW,
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

test('without a command or with --help, it lists the commands', async () => {
  const none = await cli();
  expect(none).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('name a command: backup, check, vacuum or copy'),
  });
  const help = await cli('--help');
  expect(help.exitCode).toBe(0);
  for (const name of ['backup FILE', 'check', 'vacuum', 'copy FROM TO']) expect(help.stdout).toContain(name);
  expect(await cli('backup')).toMatchObject({ exitCode: 2 });
  expect(await cli('check', '--full')).toMatchObject({ exitCode: 2 });
});

describe('backup', () => {
  test('contains every record acknowledged before it began, while writers continue', async () => {
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
    const kept = await withDatabase(file, async ({ reader }) => {
      const { rows } = await reader.execute('SELECT last_seq FROM producers');
      return Number(rows[0]?.last_seq);
    });
    expect(kept).toBeGreaterThanOrEqual(acked);
    const now = await dumpDatabase(used.stage.parts.database);
    expect(now.turns?.length).toBeGreaterThan((await dumpOf(file)).turns?.length ?? Number.POSITIVE_INFINITY);
  });

  test('equals the database row by row, and is sound', async () => {
    const file = join(await tempDir(), 'copy.db');
    expect(await cli('backup', file)).toMatchObject({ exitCode: 0 });
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('overwrites nothing, and reports a missing source', async () => {
    const file = join(await tempDir(), 'mine.txt');
    await writeFile(file, 'mine');
    expect(await cli('backup', file)).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/already exists/) });
    expect(await readFile(file, 'utf8')).toBe('mine');
    const none = join(await tempDir(), 'none.db');
    const answer = await cli('backup', `${none}.copy`, '--database', none);
    expect(answer).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`there is no database at ${none}`) });
    expect(await readdir(dirname(none))).toEqual([]);
    const nowhere = join(none, 'x', 'copy.db');
    expect(await cli('backup', nowhere)).toMatchObject({ exitCode: 1, stderr: expect.not.stringContaining(' at ') });
  });
});

describe('check', () => {
  let sound: string;
  beforeAll(async () => {
    sound = join(used.stage.dataDir, 'sound.db');
    await cli('backup', sound);
  });

  test('finds no error in a database in use', async () => {
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
  ])('reports damage to %s on one line, and fails', async (name, sql) => {
    const file = join(await tempDir(), 'copy.db');
    await copyFile(sound, file);
    await run(file, sql);
    const { exitCode, stdout } = await cli('check', '--database', file);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(new RegExp(`^${name}: .+; .+$|^audit: .+\\. .+$`, 'm'));
  });

  test('finds damaged pages', async () => {
    const file = join(await tempDir(), 'copy.db');
    const bytes = await readFile(sound);
    bytes.fill(0xa5, bytes.length / 2, bytes.length / 2 + 64 * 1024);
    await writeFile(file, bytes);
    const { exitCode, stdout, stderr } = await cli('check', '--database', file);
    expect({ exitCode, told: stdout + stderr }).toEqual({ exitCode: 1, told: expect.stringMatching(/backup|copy/) });
  });

  test('and backup report a file that is no database', async () => {
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
  test('enables incremental vacuum with --full on an older file, then frees pages', async () => {
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
});

test.each(['vacuum', 'vacuum --full'])('%s waits for another process that writes', async (command) => {
  const file = join(await tempDir(), 'held.db');
  await cli('backup', file);
  const other = new LocalConnection(file, 5_000);
  await other.run('BEGIN IMMEDIATE', 'loop');
  const ended = cli(...command.split(' '), '--database', file);
  // Longer than SQLite waits, and shorter than a person would.
  await pause(500);
  await other.run('COMMIT', 'loop');
  expect(await ended).toMatchObject({ exitCode: 0 });
  other.close();
});

describe('copy between files', () => {
  test('has every row, the search index and the triggers', async () => {
    const file = join(await tempDir(), 'copy.db');
    const answer = await cli('copy', used.file, file);
    expect(answer).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/[\d,]+ rows of \d+ tables/) });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    await expectSameSearch(used, file);
    expect(await cli('check', '--database', file)).toMatchObject({ exitCode: 0 });
    expect(await cli('copy', used.file, file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/is not empty/),
    });
  });

  test('is refused by a dashboard when it was interrupted, and restarted by the next one', async () => {
    const file = join(await tempDir(), 'copy.db');
    const partial = join(await tempDir(), 'spoilt.db');
    await cli('backup', partial);
    await run(partial, SPOILS_A_ROW);
    expect((await cli('copy', partial, file)).exitCode).toBe(1);
    await expect(openDatabase({ url: pathToFileURL(file).href })).rejects.toThrow(/holds an incomplete copy/);
    expect(await cli('check', '--database', file)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/^schema: .*cut off/m),
    });
    expect(await cli('copy', file, `${file}.2`)).toMatchObject({ exitCode: 1 });
    const again = await cli('copy', used.file, file);
    expect(again).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/starting over/) });
    expect(await dumpOf(file)).toEqual(await dumpDatabase(used.stage.parts.database));
    await expectSameSearch(used, file);
  });
});
