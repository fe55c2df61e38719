import { copyFile, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { localWriter } from '@/db/open-file';
import { deltas, insertRows } from '@/tests/support/database';
import { LONG_SELECT, turnsDuring } from '@/tests/support/event-loop';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { alwaysYield } from '../../support/event-loop';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await database.dispose();
});

const insert = (rows: string) => `INSERT INTO producer_sessions (producer_id, session_id) ${rows}`;

test('the rest of a long transaction yields', async () => {
  alwaysYield();
  const statements = ['SELECT position FROM counter', insert(`SELECT 'p', (${LONG_SELECT})`)];
  expect(await turnsDuring(database.writes.run((transaction) => transaction.batch(statements)))).toBeGreaterThan(100);
});

test('a commit yields while it waits for the disk', async () => {
  const connection = new LocalConnection(fileURLToPath(database.url), 0);
  const transaction = await localWriter(connection, {
    changed: async () => null,
    committed: () => {},
    lacksOnlyItsLog: () => false,
  }).transaction('write');
  const count = 'WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 40000)';
  await transaction.execute(insert(`${count} SELECT 'p', hex(randomblob(100)) FROM count`));
  expect(await turnsDuring(transaction.commit())).toBeGreaterThan(100);
  connection.close();
});

test('a file whose log is deleted while open refuses writes and keeps what it acknowledged', async () => {
  await insertRows(database, deltas(20));
  const path = fileURLToPath(database.url);
  await rm(`${path}-wal`);
  const refused = database.writes.run((transaction) => transaction.execute(insert("SELECT 'p', 's'")));
  await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
  // as found after a kill: the file alone
  const copy = `${path}-copy`;
  await copyFile(path, copy);
  const connection = new LocalConnection(copy, 0);
  const { rows } = await connection.execute('SELECT count(*) AS count FROM events', 'loop');
  expect(rows).toEqual([{ count: 20 }]);
  connection.close();
});
