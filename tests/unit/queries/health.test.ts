import { copyFileSync, renameSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { LibsqlError } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { Readiness, readyz } from '@/lib/server/queries/health';
import { deltas, insertRows } from '@/tests/support/database';
import { dumpDatabase, type TestDatabase, temporaryDatabase } from '../../support/database';
import { canMount, smallDisk } from '../../support/small-disk';

let database: TestDatabase;
let readiness: Readiness;
const said = vi.spyOn(console, 'error').mockImplementation(() => {});
beforeEach(async () => {
  said.mockClear();
  database = await temporaryDatabase();
  readiness = new Readiness({ freshMs: 0 });
});
afterEach(() => database.dispose());

const ask = (of: Database = database) =>
  readyz(async () => ({ database: of }), readiness).then(
    ({ status }) => status,
    (error) => error.status,
  );
const lines = () => said.mock.calls.map(([line]) => String(line));

describe('a server is ready', () => {
  test('while its database can be written to, without changing a row', async () => {
    await insertRows(database, deltas(3));
    const before = await dumpDatabase(database);
    const woken = vi.fn();
    database.onCommit(woken);
    expect(await ask()).toBe(200);
    expect(await dumpDatabase(database)).toEqual(before);
    expect(woken).not.toHaveBeenCalled();
    expect(lines()).toEqual([]);
  });

  test('with an empty database', async () => {
    expect(await ask()).toBe(200);
  });

  test('by one check for all requests within two seconds', async () => {
    readiness = new Readiness();
    const looks = vi.spyOn(database, 'trouble');
    const clock = vi.spyOn(performance, 'now').mockReturnValue(10_000);
    onTestFinished(() => clock.mockRestore());
    await Promise.all([ask(), ask(), ask()]);
    clock.mockReturnValue(11_999);
    await ask();
    expect(looks).toHaveBeenCalledTimes(1);
    clock.mockReturnValue(12_000);
    await ask();
    expect(looks).toHaveBeenCalledTimes(2);
  });
});

describe('a server is not ready, and logs it once', () => {
  test('while its database does not respond', async () => {
    // Only the timeout is faked: the check that succeeds may take any time.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const held = vi.spyOn(database, 'trouble').mockReturnValue(new Promise(() => {}));
    for (let asked = 0; asked < 2; asked += 1) {
      const answer = ask();
      await vi.waitFor(() => expect(held).toHaveBeenCalledTimes(asked + 1));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await answer).toBe(503);
    }
    held.mockRestore();
    expect(await ask()).toBe(200);
    expect(lines()).toEqual([expect.stringContaining('did not respond'), expect.stringContaining('ready again')]);
  });

  test('while its database can’t be opened', async () => {
    const failing = () => readyz(() => Promise.reject(new Error('no such folder')), readiness);
    await expect(failing()).rejects.toMatchObject({ code: 'unavailable', headers: { 'retry-after': '5' } });
    await expect(failing()).rejects.toMatchObject({ message: expect.not.stringContaining('folder') });
    expect(lines()).toEqual([expect.stringContaining('no such folder')]);
  });

  test.each([
    ['deleted', (path: string) => rmSync(path)],
    ['deleted', (path: string) => rmSync(`${path}-wal`)],
    [
      'replaced',
      (path: string) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(`${path}.copy`, path);
      },
    ],
  ])('since its file was %s', async (word, change) => {
    await insertRows(database, deltas(1));
    expect(await ask()).toBe(200);
    change(fileURLToPath(database.url));
    // Writes would vanish with this process, so none may be acknowledged.
    const writing = insertRows(database, deltas(1));
    await expect(writing).rejects.toMatchObject({ code: 'unavailable', headers: { 'retry-after': '5' } });
    expect([await ask(), await ask()]).toEqual([503, 503]);
    expect(lines()).toEqual([expect.stringContaining(word)]);
  });

  test.each([
    ['to nothing', 0],
    ['in the middle of what it holds', 20_000],
    ['and written to again by somebody else', null],
  ])('since its log was cut short: %s', async (_, bytes) => {
    await insertRows(database, deltas(100));
    expect(await ask()).toBe(200);
    await insertRows(database, deltas(100));
    const log = `${fileURLToPath(database.url)}-wal`;
    truncateSync(log, bytes ?? 0);
    // A hole, as SQLite leaves when it writes behind the end.
    if (bytes === null) truncateSync(log, 200_000);
    await expect(insertRows(database, deltas(1))).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('truncated'),
    });
    expect([await ask(), await ask()]).toEqual([503, 503]);
    expect(lines()).toEqual([expect.stringMatching(/interlude\.db-wal was truncated by another program/)]);
  });

  test('but not when SQLite changes its own WAL', async () => {
    const other = await openDatabase({ url: database.url });
    for (let round = 0; round < 3; round += 1) {
      await insertRows(database, deltas(50));
      // As a second server does when it stops.
      await other.reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
      expect(await ask()).toBe(200);
      await insertRows(database, deltas(50));
      await other.reader.execute('PRAGMA wal_checkpoint(RESTART)');
      await insertRows(other, deltas(1));
      expect(await ask()).toBe(200);
    }
    await other.close();
    expect(await ask()).toBe(200);
    expect(lines()).toEqual([]);
  });

  test('when its file was deleted right after opening', async () => {
    rmSync(fileURLToPath(database.url));
    expect(await ask()).toBe(503);
  });

  test('after damage was found, and stays so', async () => {
    database.damage.record(new LibsqlError('database disk image is malformed', 'SQLITE_CORRUPT'));
    said.mockClear();
    expect([await ask(), await ask()]).toEqual([503, 503]);
    expect(lines()).toEqual([expect.stringContaining('damaged')]);
  });

  test.runIf(canMount())('while its disk is full, until it is not', async () => {
    const disk = smallDisk('size=6m');
    const onDisk = await openDatabase({ url: pathToFileURL(join(disk.folder, 'interlude.db')).href });
    onTestFinished(() => onDisk.close());
    const fill = () => {
      const { bavail, bsize } = statfsSync(disk.folder);
      writeFileSync(join(disk.folder, 'ballast'), new Uint8Array(bavail * bsize));
    };
    expect(await ask(onDisk)).toBe(200);
    fill();
    expect([await ask(onDisk), await ask(onDisk)]).toEqual([503, 503]);
    disk.remount('size=12m');
    expect(await ask(onDisk)).toBe(200);
    expect(lines()).toEqual([expect.stringContaining('full'), expect.stringContaining('ready again')]);
  });

  test('while only writes fail', async () => {
    const failing = vi.spyOn(database.writes, 'run').mockRejectedValue(new Error('SQLITE_READONLY: read-only'));
    expect([await ask(), await ask()]).toEqual([503, 503]);
    failing.mockRestore();
    expect(await ask()).toBe(200);
    expect(lines()).toEqual([expect.stringContaining('READONLY'), expect.stringContaining('ready again')]);
  });
});

describe.runIf(canMount())('the check’s write', () => {
  test('fails on a disk without room for a page', async () => {
    const disk = smallDisk('size=6m');
    const onDisk = await openDatabase({ url: pathToFileURL(join(disk.folder, 'interlude.db')).href });
    onTestFinished(() => onDisk.close());
    const { bavail, bsize } = statfsSync(disk.folder);
    writeFileSync(join(disk.folder, 'ballast'), new Uint8Array(bavail * bsize));
    const nothing = onDisk.writes.run((transaction) =>
      transaction.batch(['INSERT INTO counter (id, position) VALUES (0, 0)', 'DELETE FROM counter WHERE id = 0']),
    );
    await expect(nothing).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('full') });
  });
});
