import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { localWriter } from '@/db/local-writer';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { hurriedWork } from '../../support/hurried-work';
import { LONG_SELECT, turnsDuring } from '../../support/turns-during';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await database.dispose();
});

const insert = (rows: string) => `INSERT INTO producer_sessions (producer_id, session_id) ${rows}`;

test('others get their turns while what is left of a long transaction is under way', async () => {
  hurriedWork();
  const statements = ['SELECT position FROM counter', insert(`SELECT 'p', (${LONG_SELECT})`)];
  expect(await turnsDuring(database.writes.run((transaction) => transaction.batch(statements)))).toBeGreaterThan(100);
});

test('others get their turns while a commit waits for the disk', async () => {
  const connection = new LocalConnection(fileURLToPath(database.url), 0);
  const transaction = await localWriter(connection, { moved: () => null }).transaction('write');
  const count = 'WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 100000)';
  await transaction.execute(insert(`${count} SELECT 'p', hex(randomblob(100)) FROM count`));
  expect(await turnsDuring(transaction.commit())).toBeGreaterThan(100);
  connection.close();
});
