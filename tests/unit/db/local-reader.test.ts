import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { LocalReader } from '@/db/local-reader';
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

const POSITION = 'SELECT position FROM counter';
test('a long read yields', async () => {
  expect(await turnsDuring(database.reader.execute(LONG_SELECT))).toBeGreaterThan(100);
});

test('a read of many rows yields', async () => {
  const rows =
    'WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000) SELECT n FROM count';
  const turns = alwaysYield();
  expect((await database.reader.execute(rows)).rows).toHaveLength(1_000);
  expect(turns()).toBeGreaterThan(900);
});

test('failed reads free their connections', async () => {
  let opened = 0;
  const open = () => {
    opened += 1;
    return new LocalConnection(fileURLToPath(database.url), 0);
  };
  const reader = new LocalReader(open, 'thread');
  const reads = Array.from({ length: 20 }, (_, n) => reader.execute(n < 12 ? 'SELECT 1 FROM nowhere' : POSITION));
  const settled = await Promise.allSettled(reads);
  expect(settled.map(({ status }) => status)).toEqual([...Array(12).fill('rejected'), ...Array(8).fill('fulfilled')]);
  // a connection is not reused after a failed read
  expect(opened).toBeGreaterThan(12);
  reader.close();
});

test('reads do not wait forever when the file cannot be opened any more', async () => {
  let opened = 0;
  const open = () => {
    opened += 1;
    if (opened > 8) throw new Error('too many open files');
    return new LocalConnection(fileURLToPath(database.url), 0);
  };
  const reader = new LocalReader(open, 'thread');
  const reads = Array.from({ length: 20 }, () => reader.execute('SELECT 1 FROM nowhere').catch(String));
  expect((await Promise.all(reads)).filter((error) => `${error}`.includes('too many open files'))).toHaveLength(12);
  reader.close();
});

test('a small read waits for no long ones', async () => {
  const ended: string[] = [];
  const long = [1, 2, 3, 4].map(() => database.reader.execute(LONG_SELECT).then(() => ended.push('long')));
  await database.reader.execute(POSITION).then(() => ended.push('small'));
  await Promise.all(long);
  expect(ended[0]).toBe('small');
});

describe.each(['reader', 'tail'] as const)('a batch of the %s', (kind) => {
  test('sees one moment, even if writes continue meanwhile', async () => {
    await insertRows(database, deltas(1));
    const snapshot = await database[kind].transaction('read');
    const before = await snapshot.batch([POSITION]);
    await insertRows(database, deltas(1));
    const after = await snapshot.batch([POSITION, POSITION]);
    snapshot.close();
    expect([...before, ...after].map(({ rows }) => rows[0]?.position)).toEqual([1, 1, 1]);
    expect((await database[kind].execute(POSITION)).rows[0]?.position).toBe(2);
  });

  test('leaves no transaction when it fails', async () => {
    const failing = database[kind].batch([POSITION, 'SELECT 1 FROM nowhere'], 'read');
    await expect(failing).rejects.toThrow('no such table: nowhere');
    await insertRows(database, deltas(1));
    const [answer] = await database[kind].batch([POSITION], 'read');
    expect(answer?.rows[0]?.position).toBe(1);
  });

  test('completes with any number of concurrent reads', async () => {
    const all = Array.from({ length: 50 }, (_, n) =>
      database[kind].batch([{ sql: 'SELECT ? AS n', args: [n] }, POSITION], 'read'),
    );
    expect((await Promise.all(all)).map(([answer]) => answer?.rows[0]?.n)).toEqual(all.map((_, n) => n));
  });
});

test('small statements on the event loop yield in between', async () => {
  const turns = alwaysYield();
  await database.tail.batch(Array(6).fill(POSITION), 'read');
  expect(turns()).toBeGreaterThanOrEqual(6);
});

test('statements on a thread add no turn of the event loop', async () => {
  const turns = alwaysYield();
  await database.reader.batch(Array(6).fill('SELECT 1 WHERE 0'), 'read');
  expect(turns()).toBe(0);
});

test('a closed reader refuses new reads and finishes those in progress', async () => {
  const reader = new LocalReader(() => new LocalConnection(fileURLToPath(database.url), 0), 'thread');
  const under = reader.execute(LONG_SELECT);
  reader.close();
  await expect(reader.execute(POSITION)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  expect((await under).rows[0]?.n).toBe(2_000_000);
});
