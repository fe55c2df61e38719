import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { LocalConnection } from '@/db/local-connection';
import { tempDir } from '../../support/temp-dir';

test('a database is opened while another process writes to it', async () => {
  const path = join(await tempDir(), 'held.db');
  const url = pathToFileURL(path).href;
  await (await openDatabase({ url, migrates: true })).close();
  const other = new LocalConnection(path, 5_000);
  await other.run('BEGIN IMMEDIATE', 'loop');
  const database = await openDatabase({ url, migrates: false });
  expect((await database.reader.execute('PRAGMA auto_vacuum')).rows[0]?.auto_vacuum).toBe(2);
  await database.close();
  other.close();
});
