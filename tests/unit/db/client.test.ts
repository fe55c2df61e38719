import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createClient, LibsqlError } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { databaseOptions, openDatabase } from '@/db/client';
import { databaseFailure, openError } from '@/db/database-error';
import { DatabaseFile } from '@/db/database-file';
import journal from '@/db/migrations/meta/_journal.json';
import { visitDatabase } from '@/tests/support/database';
import { temporaryDatabase } from '../../support/database';

const MIB = 1024 * 1024;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'interlude-client-'));
});
afterEach(async () => {
  await chmod(folder, 0o700);
  await rm(folder, { recursive: true, force: true });
});

const urlOf = (...path: string[]) => pathToFileURL(join(folder, ...path)).href;

describe('openDatabase', () => {
  it('creates the folder and the tables at the first start, and opens them at the second', async () => {
    const first = await openDatabase({ url: urlOf('deep', 'a b%20c', 'x.db') });
    await first.writes.run((tx) => tx.execute('INSERT INTO counter (id, position) VALUES (1, 7)'));
    await first.close();
    const second = await openDatabase({ url: urlOf('deep', 'a b%20c', 'x.db') });
    expect((await second.reader.execute('SELECT position FROM counter')).rows[0]?.position).toBe(7);
    await second.close();
  });

  it('makes the file readable by its owner only', async () => {
    const database = await openDatabase({ url: urlOf('fresh', 'x.db') });
    await database.writes.run((tx) => tx.execute('INSERT INTO counter (id, position) VALUES (1, 7)'));
    for (const file of ['', 'x.db', 'x.db-wal', 'x.db-shm']) {
      expect((await stat(join(folder, 'fresh', file))).mode & 0o077).toBe(0);
    }
    await database.close();
  });

  it('keeps the locks of another connection of the process, without which programs would take its log', async () => {
    const url = urlOf('x.db');
    const first = await openDatabase({ url });
    await first.writes.run((tx) => tx.execute('INSERT INTO counter (id, position) VALUES (1, 7)'));
    // as `npm start` opens it before the server, and its connection is collected
    const second = await openDatabase({ url });
    visitDatabase(fileURLToPath(url));
    expect((await stat(`${fileURLToPath(url)}-wal`)).size).toBeGreaterThan(0);
    expect(await first.trouble()).toBeNull();
    await Promise.all([first.close(), second.close()]);
  });

  it('does not report a commit as failed because the files cannot be checked', async () => {
    // a log that can be opened but not read
    await mkdir(join(folder, 'x.db-wal'));
    await writeFile(join(folder, 'x.db'), '');
    const file = new DatabaseFile(
      join(folder, 'x.db'),
      async () => false,
      async () => {},
    );
    expect(() => file.committed()).not.toThrow();
    expect(await file.changed()).toMatch(/^its files can't be checked \(EISDIR/);
    expect(await file.trouble()).toMatch(/^its files can't be checked/);
  });

  it('flushes its log at every commit', async () => {
    const database = await temporaryDatabase();
    const settings = await database.writes.run(async (tx) => ({
      journal: (await tx.execute('PRAGMA journal_mode')).rows[0]?.journal_mode,
      synchronous: (await tx.execute('PRAGMA synchronous')).rows[0]?.synchronous,
    }));
    expect(settings).toEqual({ journal: 'wal', synchronous: 2 });
    await database.dispose();
  });

  it('shrinks a log that another process’s reader made grow', async () => {
    const database = await temporaryDatabase();
    const log = `${fileURLToPath(database.url)}-wal`;
    const reader = await database.reader.transaction('read');
    await reader.execute('SELECT * FROM counter');
    const write = (bytes: number) =>
      database.writes.run((tx) =>
        tx.execute(
          `INSERT INTO producer_sessions (producer_id, session_id) VALUES (hex(randomblob(8)), hex(zeroblob(${bytes / 2})))`,
        ),
      );
    for (let count = 0; count < 5; count += 1) await write(8 * MIB);
    expect((await stat(log)).size).toBeGreaterThan(40 * MIB);
    reader.close();
    // the first checkpoints the whole log, the second restarts it
    for (let count = 0; count < 2; count += 1) await write(64);
    expect((await stat(log)).size).toBeLessThanOrEqual(32 * MIB);
    expect(await database.trouble()).toBeNull();
    await database.dispose();
  });

  it('lets two processes start on a new file at once', async () => {
    const [a, b] = await Promise.all([openDatabase({ url: urlOf('x.db') }), openDatabase({ url: urlOf('x.db') })]);
    const applied = await a.reader.execute('SELECT hash FROM __drizzle_migrations');
    expect(new Set(applied.rows.map((row) => row.hash)).size).toBe(applied.rows.length);
    expect(applied.rows).toHaveLength(journal.entries.length);
    await Promise.all([a.close(), b.close()]);
  });

  it('reports in one line that a file is not a database', async () => {
    await writeFile(join(folder, 'x.db'), 'this is a shopping list, and a long one: '.repeat(100));
    const opening = openDatabase({ url: urlOf('x.db') });
    await expect(opening).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/x\.db is not a database\. Move that file away.*$/),
    });
  });

  it('reports in one line that the folder is a file', async () => {
    await writeFile(join(folder, 'blocked'), '');
    for (const path of [
      ['blocked', 'x.db'],
      ['blocked', 'deeper', 'x.db'],
    ]) {
      await expect(openDatabase({ url: urlOf(...path) })).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/^The database .*x\.db can't be opened: .* Set INTERLUDE_DATA_DIR\.$/),
      });
    }
  });

  it.each([
    ['ENOSPC', /the disk of \S+ is full\. Free some space there, or set INTERLUDE_DATA_DIR/],
    ['EDQUOT', /this user's quota on the disk of \S+ is used up\. Free some space there, or set INTERLUDE_DATA_DIR/],
    ['SQLITE_FULL', /the disk of \S+ is full\. Free some space/],
    ['SQLITE_IOERR', /the disk of \S+ fails to read or write it\. Check that disk/],
    ['EIO', /the disk of \S+ fails to read or write it\. Check that disk/],
    ['EROFS', /x\.db can't be written here\. Set INTERLUDE_DATA_DIR/],
    ['EACCES', /x\.db can't be written here\. Set INTERLUDE_DATA_DIR/],
    ['EMFILE', /too many files are open\. Raise the limit \("ulimit -n"\)/],
    ['ENFILE', /too many files are open\. Raise the limit \("ulimit -n"\)/],
    ['TRANSACTION_TIMEOUT', /x\.db could not be migrated and is unchanged: .* Stop every Interlude that uses it/],
    ['SQLITE_CANTOPEN', /may write there, and that it may open more files/],
  ])('reports %s in one line with the path and the remedy', (code, words) => {
    const cause = /^(SQLITE|TRANSACTION)/.test(code)
      ? new LibsqlError('failed', code)
      : Object.assign(new Error(code), { code });
    // directly, or by a write during the migration
    for (const error of [cause, databaseFailure(cause)]) {
      const { message } = openError(error, join(folder, 'x.db'));
      expect(message).toMatch(words);
      expect(message).toContain(folder);
      expect(message).not.toContain('\n');
    }
  });

  it('accepts a database migrated by a newer version, unless that excludes this one', async () => {
    const url = urlOf('x.db');
    await (await openDatabase({ url })).close();
    const future = createClient({ url });
    await future.execute("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)");
    await (await openDatabase({ url })).close();
    await future.execute('UPDATE compatibility SET oldest_writer = 9999999999999');
    future.close();
    await expect(openDatabase({ url })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('was written by a newer Interlude'),
    });
  });

  it('refuses a database from before these migrations, in one line with the remedy', async () => {
    const url = urlOf('x.db');
    const past = createClient({ url });
    await past.execute('CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text, created_at numeric)');
    await past.execute("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 1)");
    past.close();
    for (const migrates of [true, false]) {
      await expect(openDatabase({ url, migrates })).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/by an earlier Interlude .*Move it away to start with an empty one.*\.$/),
      });
    }
  });

  it('names the command that creates the tables when it may not create them itself', async () => {
    await expect(openDatabase({ url: urlOf('x.db'), migrates: false })).rejects.toThrow(/Run: npm run db:migrate$/);
  });
});

describe('an invalid address', () => {
  it.each(['nonsense', 'file://remote-host/x.db', 'http:'])('is refused in one line: %s', async (url) => {
    await expect(openDatabase({ url })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^INTERLUDE_DATABASE_URL isn’t the address of a database\. Use file:.*$/),
    });
  });

  it('is not repeated, because it may hold a secret', async () => {
    const opening = openDatabase({ url: 'libsql://127.0.0.1:1?authToken=sesame', migrates: true });
    const error: Error = await opening.catch((failure) => failure);
    expect(error.message).toMatch(/^The database 127\.0\.0\.1:1 can't be opened: /);
    expect(error.message).not.toContain('sesame');
  });
});

describe('databaseOptions', () => {
  it('puts the file under .interlude by default', () => {
    expect(databaseOptions({}).url).toBe(pathToFileURL(join(process.cwd(), '.interlude', 'interlude.db')).href);
    expect(databaseOptions({ INTERLUDE_DATA_DIR: '/data/x y' }).url).toBe('file:///data/x%20y/interlude.db');
  });

  it('reads a relative file URL from the working directory', () => {
    expect(databaseOptions({ INTERLUDE_DATABASE_URL: 'file:local.db' }).url).toBe(
      pathToFileURL(join(process.cwd(), 'local.db')).href,
    );
    expect(databaseOptions({ INTERLUDE_DATABASE_URL: 'file:///var/x.db' }).url).toBe('file:///var/x.db');
  });

  it('passes the token to a server', () => {
    const env = { INTERLUDE_DATABASE_URL: 'libsql://x.turso.io', INTERLUDE_DATABASE_AUTH_TOKEN: 'secret' };
    expect(databaseOptions(env)).toEqual({ url: 'libsql://x.turso.io', authToken: 'secret' });
  });
});
