import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { expect, test } from 'vitest';
import { refusedStart } from '../support/cli';
import { tempDir } from '../support/temp-dir';

test('npm start names a file that is no database', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'interlude.db'), 'Dear diary, this is a text and not a database at all.');
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toMatch(
    /interlude\.db is not a database\. Move that file away/,
  );
});

test('npm start refuses a database of a newer version', async () => {
  const folder = await tempDir();
  const client = createClient({ url: `file:${join(folder, 'interlude.db')}` });
  await client.execute('CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text, created_at numeric)');
  await client.execute("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)");
  client.close();
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toContain('was written by a newer Interlude');
});

test('npm start names an address that is no database', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_DATABASE_URL: 'nonsense' };
  expect(await refusedStart(env)).toContain('INTERLUDE_DATABASE_URL isn’t the address of a database');
});

test('npm start refuses a token that no header can carry', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_TOKEN: 'ein Schlüssel mit Lücken' };
  expect(await refusedStart(env)).toContain("can't be sent in a header");
});
