import { writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { describe, expect, test } from 'vitest';
import { refusedStart } from '../support/cli';
import { canMount, smallDisk } from '../support/small-disk';
import { tempDir } from '../support/temp-dir';

test('npm start reports a damaged database', async () => {
  const folder = await tempDir();
  const file = join(folder, 'interlude.db');
  const client = createClient({ url: `file:${file}` });
  await client.execute('CREATE TABLE t (x)');
  client.close();
  await writeFile(file, Buffer.alloc(8_192, 0xab), { flag: 'r+' });
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toContain(file);
});

test('npm start reports a folder in place of the database', async () => {
  const folder = await tempDir();
  await mkdir(join(folder, 'interlude.db'));
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toContain('is a folder');
});

test('npm start reports a database that another process has locked', async () => {
  const folder = await tempDir();
  const client = createClient({ url: `file:${join(folder, 'interlude.db')}` });
  await client.execute('PRAGMA journal_mode = DELETE');
  const held = await client.transaction('write');
  await held.execute('CREATE TABLE t (x)');
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toContain('Another process holds the database');
  await held.rollback();
  client.close();
});

test.each([
  ['postgres://localhost/interlude', "can't be opened"],
  ['http://127.0.0.1:1', "can't be opened"],
])('npm start reports that it can’t open the database at %s', async (url, words) => {
  expect(await refusedStart({ INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_DATABASE_URL: url })).toContain(words);
});

describe.runIf(canMount())('npm start', () => {
  test('reports a read-only disk, with the alternative', async () => {
    const disk = smallDisk('ro,size=1m');
    for (const folder of [disk.folder, join(disk.folder, 'data')]) {
      const words = await refusedStart({ INTERLUDE_DATA_DIR: folder });
      expect(words).toMatch(/can't be written here\. Set INTERLUDE_DATA_DIR .* or INTERLUDE_DATABASE_URL/);
    }
  });

  test('reports a disk without room for a database, with its folder and what to do', async () => {
    const disk = smallDisk('size=64k');
    const words = await refusedStart({ INTERLUDE_DATA_DIR: disk.folder });
    expect(words).toContain(`the disk of ${disk.folder} is full`);
    expect(words).toMatch(/Free some space there, or set INTERLUDE_DATA_DIR/);
  });

  test('reports a disk without room for a token, with its folder and what to do', async () => {
    const disk = smallDisk('size=4k');
    writeFileSync(join(disk.folder, 'ballast'), new Uint8Array(4_096));
    const words = await refusedStart({ INTERLUDE_DATA_DIR: disk.folder, INTERLUDE_TOKEN: '' });
    expect(words).toContain(
      `the disk of ${disk.folder} is full; free some space there, or set INTERLUDE_DATA_DIR to a folder elsewhere`,
    );
  });
});
