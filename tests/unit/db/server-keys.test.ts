import { afterEach, beforeEach, expect, test } from 'vitest';
import { serverKey } from '@/db/server-keys';
import { type TestDatabase, temporaryDatabase } from '@/tests/support/database';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(() => database.dispose());

test('a server key is 32 random bytes, one for each purpose', async () => {
  const [signIn, digest] = [await serverKey(database, 'sign-in'), await serverKey(database, 'digest')];
  expect([signIn.byteLength, digest.byteLength]).toEqual([32, 32]);
  expect(signIn).not.toEqual(digest);
  const other = await temporaryDatabase();
  expect(await serverKey(other, 'sign-in')).not.toEqual(signIn);
  await other.dispose();
});

test('instances that create a key at once share it, also after a restart', async () => {
  // each has its own reader, as in its own process: keys are cached per reader
  const instances = [1, 2, 3].map(() => ({ ...database, reader: { ...database.reader } }));
  const [first, ...others] = await Promise.all(instances.map((instance) => serverKey(instance, 'sign-in')));
  for (const other of others) expect(other).toEqual(first);
  database = await database.reopen();
  expect(await serverKey(database, 'sign-in')).toEqual(first);
});

test('a key is read once', async () => {
  const first = await serverKey(database, 'sign-in');
  await database.writes.run((transaction) => transaction.execute('DELETE FROM server_keys'));
  expect(await serverKey(database, 'sign-in')).toEqual(first);
});
