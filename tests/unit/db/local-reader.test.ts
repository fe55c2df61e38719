import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { LocalReader } from '@/db/local-reader';
import { nextTurn } from '@/db/next-turn';
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

const POSITION = 'SELECT position FROM counter';
/** Some hundred milliseconds of counting. */
const LONG = `WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 2000000)
              SELECT max(n) AS n FROM count`;

test('others get their turns while a long read is under way, a long write, and a commit', async () => {
  const reads = await turnsDuring(database.reader.execute(LONG));
  expect(reads).toBeGreaterThan(100);
  const insert = `INSERT INTO producer_sessions (producer_id, session_id) SELECT 'p', (${LONG})`;
  const writes = await turnsDuring(database.writes.run((transaction) => transaction.execute(insert), 1_000_000));
  expect(writes).toBeGreaterThan(100);
});

test('a small read waits for none of several long ones', async () => {
  const ended: string[] = [];
  const long = [1, 2, 3, 4].map(() => database.reader.execute(LONG).then(() => ended.push('long')));
  await database.reader.execute(POSITION).then(() => ended.push('small'));
  await Promise.all(long);
  expect(ended[0]).toBe('small');
});

test('others get their turns while a small request does much', async () => {
  hurriedWork();
  const turns = turnsDuring(database.writes.run((transaction) => transaction.batch([POSITION, LONG])));
  expect(await turns).toBeGreaterThan(100);
});

async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  for (; !isDone; turns += 1) await nextTurn();
  await work;
  return turns;
}

describe.each(['reader', 'tail'] as const)('a batch of the %s', (kind) => {
  test('sees one moment, whatever is written meanwhile', async () => {
    await insertRows(database, deltas(1));
    const snapshot = await database[kind].transaction('read');
    const before = await snapshot.batch([POSITION]);
    await insertRows(database, deltas(1));
    const after = await snapshot.batch([POSITION, POSITION]);
    snapshot.close();
    expect([...before, ...after].map(({ rows }) => rows[0]?.position)).toEqual([1, 1, 1]);
    expect((await database[kind].execute(POSITION)).rows[0]?.position).toBe(2);
  });

  test('leaves nothing behind where it fails', async () => {
    const failing = database[kind].batch([POSITION, 'SELECT 1 FROM nowhere'], 'read');
    await expect(failing).rejects.toThrow('no such table: nowhere');
    await insertRows(database, deltas(1));
    const [answer] = await database[kind].batch([POSITION], 'read');
    expect(answer?.rows[0]?.position).toBe(1);
  });

  test('is answered however many there are at once', async () => {
    const all = Array.from({ length: 50 }, (_, n) =>
      database[kind].batch([{ sql: 'SELECT ? AS n', args: [n] }, POSITION], 'read'),
    );
    expect((await Promise.all(all)).map(([answer]) => answer?.rows[0]?.n)).toEqual(all.map((_, n) => n));
  });
});

test('small statements on the loop give others their turns between', async () => {
  const turns = hurriedWork();
  await database.tail.batch(Array(6).fill(POSITION), 'read');
  expect(turns()).toBeGreaterThanOrEqual(6);
});

describe('a connection', () => {
  test.each(['loop', 'thread'] as const)(
    'on the %s takes and gives values as the client for servers does',
    async (place) => {
      const connection = new LocalConnection(fileURLToPath(database.url), 0);
      const { rows } = await connection.execute(
        {
          sql: 'SELECT ? AS yes, ? AS n, ? AS text, ? AS none, 9007199254740991 AS most',
          args: [true, 1.5, 'é', null],
        },
        place,
      );
      expect(rows).toEqual([{ yes: 1, n: 1.5, text: 'é', none: null, most: Number.MAX_SAFE_INTEGER }]);
      await expect(connection.execute('SELECT 9007199254740993', place)).rejects.toThrow(RangeError);
      await expect(connection.execute({ sql: 'SELECT ?', args: [Number.NaN] }, place)).rejects.toThrow(RangeError);
      await expect(connection.execute('SELECT unknown', place)).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
      connection.close();
    },
  );

  test('goes on with a statement that failed', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    const insert = { sql: 'INSERT INTO counter (id, position) VALUES (?, 1)', args: [1] };
    await connection.execute(insert, 'loop');
    const again = connection.execute(insert, 'loop');
    await expect(again).rejects.toMatchObject({
      code: 'SQLITE_CONSTRAINT',
      extendedCode: 'SQLITE_CONSTRAINT_PRIMARYKEY',
    });
    await connection.execute({ ...insert, args: [2] }, 'loop');
    const { rows } = await connection.execute('SELECT id FROM counter', 'loop');
    expect(rows.map(({ id }) => id)).toEqual([1, 2]);
    connection.close();
  });

  test('sees a table that was changed since a statement was prepared', async () => {
    const connection = new LocalConnection(fileURLToPath(database.url), 0);
    await connection.run('CREATE TABLE grown (a)', 'loop');
    const columns = async () => Object.keys((await connection.execute('SELECT * FROM grown', 'loop')).rows[0] ?? {});
    await connection.run('INSERT INTO grown VALUES (1)', 'loop');
    expect(await columns()).toEqual(['a']);
    await database.writes.run((transaction) => transaction.execute('ALTER TABLE grown ADD COLUMN b DEFAULT 2'));
    expect(await columns()).toEqual(['a', 'b']);
    connection.close();
  });
});

test('a reader that was closed refuses, and lets what is under way come to its end', async () => {
  const reader = new LocalReader(() => new LocalConnection(fileURLToPath(database.url), 0), 'thread');
  const under = reader.execute(LONG);
  reader.close();
  await expect(reader.execute(POSITION)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  expect((await under).rows[0]?.n).toBe(2_000_000);
});
