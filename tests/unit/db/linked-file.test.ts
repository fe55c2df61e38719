import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Database, openDatabase } from '@/db/client';
import { deltas, insertRows } from '@/tests/support/database';
import { temporaryDatabase } from '../../support/database';
import { tempDir } from '../../support/temp-dir';

/** A database whose file is a link. SQLite keeps the log beside the target. */
let link: string;
let folder: string;
let real: string;
const said = vi.spyOn(console, 'error').mockImplementation(() => {});

beforeEach(async () => {
  said.mockClear();
  const made = await temporaryDatabase();
  await insertRows(made, deltas(5));
  folder = await tempDir();
  real = join(folder, 'real.db');
  link = join(await tempDir(), 'link.db');
  await made.close();
  renameSync(fileURLToPath(made.url), real);
  await made.dispose();
  symlinkSync(real, link);
});

async function open(): Promise<Database> {
  const database = await openDatabase({ url: pathToFileURL(link).href });
  onTestFinished(() => database.close());
  return database;
}
async function count(database: Database): Promise<unknown> {
  return (await database.reader.execute('SELECT count(*) AS count FROM events')).rows[0]?.count;
}

describe('a database behind a link', () => {
  it('detects that its log was lost', async () => {
    const database = await open();
    await insertRows(database, deltas(20));
    truncateSync(`${real}-wal`, 0);
    expect(await database.trouble()).toContain(`its log ${real}-wal was truncated`);
    await expect(insertRows(database, deltas(1))).rejects.toThrow();
  });

  it('sets the log of another file aside', async () => {
    const killed = await open();
    const backup = join(folder, 'backup.db');
    await killed.reader.execute('PRAGMA wal_checkpoint(TRUNCATE)');
    copyFileSync(real, backup);
    await insertRows(killed, deltas(20));
    renameSync(backup, real);
    expect(await count(await open())).toBe(5);
    expect(readdirSync(folder).filter((name) => name.includes('-wal-set-aside-'))).toHaveLength(1);
    expect(said.mock.calls.flat()).toEqual([expect.stringContaining(`${real}-wal belongs to the previous file`)]);
  });

  it.each([
    ['is deleted', () => rmSync(link), 'was deleted'],
    ['is replaced by a file', () => replaceLink((path) => copyFileSync(real, path)), 'was replaced by another'],
    ['points elsewhere', () => replaceLink((path) => symlinkSync(copyOfReal(), path)), 'was replaced by another'],
  ])('is not written to when the link %s', async (_how, change, trouble) => {
    const database = await open();
    await insertRows(database, deltas(1));
    change();
    expect(await database.trouble()).toBe(`its file ${link} ${trouble}`);
  });

  it('is refused in one line when its target does not exist', async () => {
    rmSync(real);
    await expect(open()).rejects.toThrow(/^The database .*link\.db can't be written here\. .*$/);
    expect(existsSync(real)).toBe(false);
  });
});

function replaceLink(make: (path: string) => void): void {
  rmSync(link);
  make(link);
}

function copyOfReal(): string {
  const copy = join(folder, 'copy.db');
  copyFileSync(real, copy);
  return copy;
}
