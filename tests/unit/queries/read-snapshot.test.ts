import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Reader } from '@/db/reader';
import { query, readSnapshot } from '@/lib/server/queries/read-snapshot';
import { insertRows } from '@/tests/support/database';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(() => database.dispose());

/** Reads a database that another process writes to after each read. */
const disturbed = (): Pick<Reader, 'batch'> => ({
  batch: async (...asked) => {
    const found = await database.reader.batch(...asked);
    await insertRows(database, [{ session: 's1' }]);
    return found;
  },
});

const AGENT: Scope = { kind: 'agents', ids: ['a1'], prefixes: [] };

test.each([
  ['everything', EVERYTHING],
  ['an agent', AGENT],
])('reads the position in the snapshot of the rows, for a reader of %s', async (_, scope) => {
  await insertRows(database, [{ session: 's1' }]);
  const newest = query((row) => String(row.at), 'SELECT max(updated_position) AS at FROM sessions');
  const { position, found } = await readSnapshot({ reader: disturbed(), scope }, [newest]);
  expect(found).toEqual([[position]]);
});
