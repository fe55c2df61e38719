import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { hurriedWork } from '../../support/hurried-work';
import { deltas, insertRows } from '../../support/insert-rows';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await database.dispose();
});

test('a batch of reads gives others their turns between, and sees one moment all the same', async () => {
  await insertRows(database, deltas(1));
  const turns = hurriedWork();
  const read = database.reader.batch(
    Array.from({ length: 6 }, () => 'SELECT position FROM counter'),
    'read',
  );
  const written = insertRows(database, deltas(1)).then(() => 'written');
  const first = await Promise.race([read, written]);
  expect(first).toBe('written');
  expect((await read).map(({ rows }) => rows[0]?.position)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(turns()).toBeGreaterThanOrEqual(6);
});
