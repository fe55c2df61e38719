import {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '@/db/client';
import { deltas, insertRows } from '@/tests/support/database';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { tempDir } from '../../support/temp-dir';

/** The database of a killed server; each test changes its files before the next start. */
let killed: TestDatabase;
let path: string;
let backup: string;
const said = vi.spyOn(console, 'error').mockImplementation(() => {});

beforeEach(async () => {
  said.mockClear();
  killed = await temporaryDatabase();
  path = fileURLToPath(killed.url);
  await insertRows(killed, deltas(5));
  await killed.reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
  backup = join(await tempDir(), 'backup.db');
  copyFileSync(path, backup);
  // Rows that are only in the log. It is still open, unlike after a kill, but nothing is finished or checkpointed.
  await insertRows(killed, deltas(20));
});
afterEach(() => killed.dispose());

/** The event count and the integrity check after the next start. */
async function started(file = path): Promise<{ events: unknown; check: unknown }> {
  const database = await openDatabase({ url: pathToFileURL(file).href });
  onTestFinished(() => database.close());
  const events = await database.reader.execute('SELECT count(*) AS count FROM events');
  const check = await database.reader.execute('PRAGMA integrity_check');
  return { events: events.rows[0]?.count, check: check.rows[0]?.integrity_check };
}

const setAside = () => readdirSync(dirname(path)).filter((name) => name.includes('-wal-set-aside-'));
const lines = () => said.mock.calls.map(([line]) => String(line));

describe('a log of another file is set aside whole and logged:', () => {
  test.each([
    ['a backup replaces the file', () => renameSync(copyBeside(), path)],
    [
      'the file is removed and a backup copied there',
      () => {
        rmSync(path);
        copyFileSync(backup, path);
      },
    ],
  ])('%s', async (_, restore) => {
    const log = readFileSync(`${path}-wal`);
    restore();
    expect(await started()).toEqual({ events: 5, check: 'ok' });
    const [aside, ...others] = setAside();
    expect(others).toEqual([]);
    expect(readFileSync(join(dirname(path), aside ?? '')).equals(log)).toBe(true);
    expect(lines()).toEqual([expect.stringContaining(`was set aside as ${join(dirname(path), aside ?? '')}.`)]);
    // the next start finds the new pair
    expect(await started()).toEqual({ events: 5, check: 'ok' });
    expect(setAside()).toHaveLength(1);
  });

  test('the file is moved away to start with an empty one', async () => {
    renameSync(path, `${path}.old`);
    expect(await started()).toEqual({ events: 0, check: 'ok' });
    expect(setAside()).toHaveLength(1);
  });

  test('another program truncated it to less than was checkpointed', async () => {
    for (let count = 0; count < 10; count += 1) await insertRows(killed, deltas(10));
    await killed.reader.execute('PRAGMA wal_checkpoint(PASSIVE)');
    truncateSync(`${path}-wal`, statSync(`${path}-wal`).size / 2);
    expect(await killed.trouble()).toContain('truncated');
    expect(await started()).toEqual({ events: 125, check: 'ok' });
    expect(lines()).toEqual([expect.stringContaining('was truncated by another program')]);
  });
});

describe('a log of the file beside it is applied:', () => {
  test('after a kill', async () => {
    expect(await started()).toEqual({ events: 25, check: 'ok' });
  });

  test('after a kill of a version that wrote no note', async () => {
    rmSync(`${path}-opened`);
    expect(await started()).toEqual({ events: 25, check: 'ok' });
  });

  test('with an unreadable note', async () => {
    writeFileSync(`${path}-opened`, '{"folder":');
    expect(await started()).toEqual({ events: 25, check: 'ok' });
  });

  test('in a copied folder with its note', async () => {
    const copy = join(await tempDir(), 'copy');
    cpSync(dirname(path), copy, { recursive: true, preserveTimestamps: true });
    expect(await started(join(copy, basename(path)))).toEqual({ events: 25, check: 'ok' });
  });

  test('when all files were restored together', async () => {
    const copy = await tempDir();
    cpSync(dirname(path), copy, { recursive: true });
    for (const name of readdirSync(dirname(path))) rmSync(join(dirname(path), name));
    cpSync(copy, dirname(path), { recursive: true });
    expect(await started()).toEqual({ events: 25, check: 'ok' });
  });

  test('after the file was moved away and back', async () => {
    renameSync(path, `${path}.old`);
    renameSync(`${path}.old`, path);
    expect(await started()).toEqual({ events: 25, check: 'ok' });
  });

  afterEach(() => {
    expect(setAside()).toEqual([]);
    expect(lines()).toEqual([]);
  });
});

function copyBeside(): string {
  copyFileSync(backup, `${path}.new`);
  return `${path}.new`;
}
