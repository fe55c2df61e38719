import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@libsql/client';
import { describe, expect, test } from 'vitest';
import { canMount, smallDisk } from '../support/small-disk';
import { tempDir } from '../support/temp-dir';

/** `npm start` where there is no database to be had: one line that says what to do, and no server. */
const program = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';

async function refused(env: Record<string, string>): Promise<string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(INTERLUDE_|HOST$|PORT$|npm_)/.test(name));
  const child = spawn(process.execPath, [program, '--port', '0'], {
    env: { ...(Object.fromEntries(kept) as NodeJS.ProcessEnv), INTERLUDE_TOKEN: TOKEN, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const exitCode = await new Promise((resolve) => child.once('close', resolve));
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^interlude: [^\n]+\n$/) });
  return stderr;
}

test('a file that is no database is named, and left as it is', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'interlude.db'), 'Dear diary, this is a text and not a database at all.');
  expect(await refused({ INTERLUDE_DATA_DIR: folder })).toMatch(
    /interlude\.db is not a database\. Move that file away/,
  );
});

test('a database that is damaged is named', async () => {
  const folder = await tempDir();
  const file = join(folder, 'interlude.db');
  const client = createClient({ url: `file:${file}` });
  await client.execute('CREATE TABLE t (x)');
  client.close();
  await writeFile(file, Buffer.alloc(8_192, 0xab), { flag: 'r+' });
  expect(await refused({ INTERLUDE_DATA_DIR: folder })).toContain(file);
});

test('a folder in place of the database is named', async () => {
  const folder = await tempDir();
  await mkdir(join(folder, 'interlude.db'));
  expect(await refused({ INTERLUDE_DATA_DIR: folder })).toContain('it is a folder');
});

test('a database of a newer version is left alone', async () => {
  const folder = await tempDir();
  const client = createClient({ url: `file:${join(folder, 'interlude.db')}` });
  await client.execute('CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text, created_at numeric)');
  await client.execute("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)");
  client.close();
  expect(await refused({ INTERLUDE_DATA_DIR: folder })).toContain('was written by a newer Interlude');
});

test('a database held by another process is named', async () => {
  const folder = await tempDir();
  const client = createClient({ url: `file:${join(folder, 'interlude.db')}` });
  await client.execute('PRAGMA journal_mode = DELETE');
  const held = await client.transaction('write');
  await held.execute('CREATE TABLE t (x)');
  expect(await refused({ INTERLUDE_DATA_DIR: folder })).toContain('Another process holds the database');
  await held.rollback();
  client.close();
});

test.each([
  ['nonsense', 'INTERLUDE_DATABASE_URL isn’t the address of a database'],
  ['postgres://localhost/interlude', "can't be opened"],
  ['http://127.0.0.1:1', "can't be opened"],
])('the address %s is no database', async (url, words) => {
  expect(await refused({ INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_DATABASE_URL: url })).toContain(words);
});

test('a token that no header can carry is refused', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_TOKEN: 'ein Schlüssel mit Lücken' };
  expect(await refused(env)).toContain("can't be sent in a header");
});

describe.runIf(canMount())('a disk', () => {
  test('that is read-only is told, with what to do instead', async () => {
    const disk = smallDisk('ro,size=1m');
    for (const folder of [disk.folder, join(disk.folder, 'data')]) {
      const words = await refused({ INTERLUDE_DATA_DIR: folder });
      expect(words).toMatch(/can't be written here\. Set INTERLUDE_DATA_DIR .* or INTERLUDE_DATABASE_URL/);
    }
  });

  test('without room for a database is told, with its folder and what to do', async () => {
    const disk = smallDisk('size=64k');
    const words = await refused({ INTERLUDE_DATA_DIR: disk.folder });
    expect(words).toContain(`the disk of ${disk.folder} is full`);
    expect(words).toMatch(/Free some space there, or set INTERLUDE_DATA_DIR/);
  });

  test('without room for a token is told likewise', async () => {
    const disk = smallDisk('size=4k');
    writeFileSync(join(disk.folder, 'ballast'), new Uint8Array(4_096));
    const words = await refused({ INTERLUDE_DATA_DIR: disk.folder, INTERLUDE_TOKEN: '' });
    expect(words).toContain(
      `the disk of ${disk.folder} is full; free some space there, or set INTERLUDE_DATA_DIR to a folder elsewhere`,
    );
  });
});
