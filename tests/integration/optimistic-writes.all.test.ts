import { createClient } from '@libsql/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '@/db/open-server';
import { pruneCommits } from '@/db/optimistic-transaction';
import { type OptimisticLimits, OptimisticWrites } from '@/db/optimistic-writes';
import { ProvisionalPositions } from '@/db/provisional-positions';
import type { WriteKey, WriteTransaction } from '@/db/writes';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';

/** Jobs of several instances on one libSQL server over lossy connections. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;

let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
let direct: ReturnType<typeof createClient>;
const opened: { close(): unknown }[] = [];
beforeAll(async () => {
  if ('missing' in ensureLibsqlServer()) return;
  libsql = await startLibsqlServer();
  direct = createClient({ url: libsql.url });
});
afterAll(async () => {
  for (const one of opened) await one.close();
  direct?.close();
  await libsql?.stop();
});
beforeEach(async () => {
  await direct.batch(
    [
      'DROP TABLE IF EXISTS counter',
      'DROP TABLE IF EXISTS touched',
      'DROP TABLE IF EXISTS commits',
      'DROP TABLE IF EXISTS sums',
      'DROP TABLE IF EXISTS notes',
      'CREATE TABLE counter (id INTEGER PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE TABLE touched (key TEXT PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE TABLE commits (mark TEXT PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE INDEX touched_by_position ON touched (position)',
      'CREATE TABLE sums (key TEXT PRIMARY KEY, sum INTEGER NOT NULL)',
      'CREATE TABLE notes (position INTEGER PRIMARY KEY, who TEXT NOT NULL, body TEXT)',
    ],
    'write',
  );
});

function instance(url = libsql.url, limits: Partial<OptimisticLimits> = {}): OptimisticWrites {
  const connection = connect({ url, authToken: undefined });
  opened.push(connection);
  return new OptimisticWrites(connection.server, limits);
}

async function all(sql: string): Promise<Record<string, unknown>[]> {
  return (await direct.execute(sql)).rows.map((row) => ({ ...row }));
}

async function nextSerial(transaction: WriteTransaction): Promise<number> {
  const position = (await transaction.position()) + 1;
  await transaction.moveTo(position);
  return position;
}

/** Reads the sum, waits, and writes it back: exposes lost updates. */
async function addOne(transaction: WriteTransaction, key: WriteKey, who: string): Promise<void> {
  transaction.touch(key);
  const { rows } = await transaction.execute({ sql: 'SELECT sum FROM sums WHERE key = ?', args: [key] });
  const sum = Number(rows[0]?.sum ?? 0) + 1;
  await transaction.execute({
    sql: 'INSERT INTO sums (key, sum) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET sum = excluded.sum',
    args: [key, sum],
  });
  await transaction.execute({
    sql: 'INSERT INTO notes (position, who, body) VALUES (?, ?, ?)',
    args: [await nextSerial(transaction), who, JSON.stringify({ key, sum })],
  });
}

suites('jobs of several instances', () => {
  test('lose no update, and order the work on a key by position', async () => {
    const instances = [instance(), instance(), instance()];
    const keys: WriteKey[] = ['agent:a', 'agent:b', 'agent:c'];
    await Promise.all(
      Array.from({ length: 90 }, (_, index) => {
        const key = keys[index % keys.length] as WriteKey;
        return instances[index % 2 === 0 ? index % 3 : 2]?.run(
          (transaction) => addOne(transaction, key, `one of ${index}`),
          {
            keys: [key],
          },
        );
      }),
    );
    expect(await all('SELECT key, sum FROM sums ORDER BY key')).toEqual(keys.map((key) => ({ key, sum: 30 })));
    for (const key of keys) {
      const notes = await all(`SELECT body->>'sum' AS sum FROM notes WHERE body->>'key' = '${key}' ORDER BY position`);
      expect(notes.map(({ sum }) => Number(sum))).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    }
  });

  test('run once each when the connection loses requests or responses', async () => {
    const line = await unreliableProxy(libsql.url, 1);
    opened.push(line as UnreliableProxy);
    const far = instance(line.origin);
    line.lose({ requests: 0.08, answers: 0.08 });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 120 }, (_, index) =>
        far.run((transaction) => addOne(transaction, `agent:${index % 8}`, `job ${index}`)),
      ),
    );
    line.lose({ requests: 0, answers: 0 });
    const done = outcomes.flatMap(({ status }, index) => (status === 'fulfilled' ? [`job ${index}`] : []));
    const written = (await all('SELECT who FROM notes')).map(({ who }) => String(who));
    expect(new Set(written).size).toBe(written.length);
    expect(done.filter((who) => !written.includes(who))).toEqual([]);
    // A job is refused when its write is lost, or its read twice: 13 to 21 of 120, and up to 56 on a busy machine.
    expect(done.length).toBeGreaterThan(30);
    const [total] = await all('SELECT sum(sum) AS sum FROM sums');
    expect(Number(total?.sum)).toBe(written.length);
  });

  test('complete even though others commit first each time', async () => {
    const [slow, quick] = [instance(libsql.url, { mostConflicts: 3 }), instance()];
    let runs = 0;
    let others = 0;
    const writes = () => quick.run((transaction) => addOne(transaction, 'agent:a', `other ${++others}`));
    let held: Promise<void> = Promise.resolve();
    const first = await slow.run(async (transaction) => {
      runs += 1;
      transaction.touch('agent:a');
      await transaction.execute('SELECT sum FROM sums');
      // On the last attempt, later jobs wait.
      if (runs <= 3) await writes();
      else held = writes();
      await addOne(transaction, 'agent:a', 'at last');
      return await transaction.position();
    });
    await held;
    expect(runs).toBe(4);
    expect((await all('SELECT who FROM notes ORDER BY position')).map(({ who }) => who)).toEqual(
      expect.arrayContaining(['at last']),
    );
    expect((await all('SELECT position FROM notes ORDER BY position')).map(({ position }) => position)).toContain(
      first,
    );
    const sums = (await all("SELECT body->>'sum' AS sum FROM notes ORDER BY position")).map(({ sum }) => Number(sum));
    expect(sums).toEqual([1, 2, 3, 4, 5]);
    const [last] = (await all('SELECT who FROM notes ORDER BY position')).slice(-1);
    expect(last?.who).toMatch(/^other/);
  });

  test('that only depend on a key run concurrently, and not past one that changes it', async () => {
    const [one, other] = [instance(), instance()];
    let runs = 0;
    const relying = one.run(async (transaction) => {
      runs += 1;
      transaction.rely('access');
      await transaction.execute('SELECT sum FROM sums');
      if (runs === 1) {
        await other.run(async (second) => {
          second.rely('access');
          await second.execute(`INSERT INTO sums VALUES ('beside', 1)`);
        });
        await other.run(async (second) => {
          second.touch('access');
          await second.execute(`INSERT INTO sums VALUES ('before', 1)`);
        });
      }
      await transaction.execute({ sql: 'INSERT INTO sums VALUES (?, 1)', args: [`run ${runs}`] });
    });
    await relying;
    expect((await all('SELECT key FROM sums ORDER BY key')).map(({ key }) => key)).toEqual([
      'before',
      'beside',
      'run 2',
    ]);
  });

  test('read their own writes, which others don’t before the commit', async () => {
    const seen = await instance().run(async (transaction) => {
      await transaction.execute(`INSERT INTO sums VALUES ('own', 1)`);
      const changed = await transaction.execute(`UPDATE sums SET sum = sum + 1 WHERE key = 'own' RETURNING sum`);
      const { rows } = await transaction.execute('SELECT sum FROM sums');
      return [changed.rows[0]?.sum, rows[0]?.sum, (await all('SELECT * FROM sums')).length];
    });
    expect(seen).toEqual([2, 2, 0]);
    expect(await all('SELECT * FROM sums')).toEqual([{ key: 'own', sum: 2 }]);
  });

  test('roll back to a savepoint, and receive a rejection there', async () => {
    await instance().run(async (transaction) => {
      await transaction.execute(`INSERT INTO sums VALUES ('kept', 1)`);
      await transaction.execute('SAVEPOINT part');
      await transaction.execute(`INSERT INTO sums VALUES ('kept', 2)`);
      await expect(transaction.execute('RELEASE part')).rejects.toThrow(/UNIQUE/);
      await transaction.execute('ROLLBACK TO part');
      await transaction.execute('RELEASE part');
    });
    expect(await all('SELECT * FROM sums')).toEqual([{ key: 'kept', sum: 1 }]);
  });

  test('write nothing after a newer version forbids it, even while holding the lock', async () => {
    await direct.batch(
      [
        'DROP TABLE IF EXISTS compatibility',
        'CREATE TABLE compatibility (id INTEGER PRIMARY KEY, oldest_writer INTEGER NOT NULL)',
        'INSERT INTO compatibility VALUES (1, 7)',
      ],
      'write',
    );
    const [optimistic, locking] = [
      instance(libsql.url, { version: 7 }),
      instance(libsql.url, { version: 7, mostConflicts: 0 }),
    ];
    for (const writes of [optimistic, locking]) await writes.run((transaction) => addOne(transaction, 'agent:a', 'b'));
    const before = await all('SELECT * FROM notes');
    expect(before).toHaveLength(2);
    for (const change of ['UPDATE compatibility SET oldest_writer = 8', 'DELETE FROM compatibility']) {
      await direct.execute(change);
      for (const writes of [optimistic, locking])
        await expect(writes.run((transaction) => addOne(transaction, 'agent:a', 'b'))).rejects.toMatchObject({
          code: 'unavailable',
          message: expect.stringMatching(/Update this instance/),
        });
    }
    expect(await all('SELECT * FROM notes')).toEqual(before);
  });

  test('are forgotten except the newest, also those without changes', async () => {
    const writes = instance();
    await writes.run((transaction) => addOne(transaction, 'agent:a', 'a'));
    const [{ position }] = (await all('SELECT position FROM counter')) as [{ position: number }];
    for (let n = 0; n < 20; n += 1)
      await writes.run((transaction) => transaction.execute("UPDATE sums SET sum = sum + 1 WHERE key = 'agent:a'"));
    expect(await all('SELECT position FROM counter')).toEqual([{ position }]);
    const rows = 'SELECT count(*) AS count FROM commits';
    expect(await all(rows)).toEqual([{ count: 21 }]);
    expect(await pruneCommits(direct, writes, 5)).toBe(false);
    // This was a job as well.
    expect(await all(rows)).toEqual([{ count: 6 }]);
    expect(await all('SELECT key, position FROM touched')).toEqual([{ key: 'forgotten', position }]);
    // A job that starts now has missed nothing.
    await writes.run((transaction) => addOne(transaction, 'agent:a', 'a'));
    expect(await all('SELECT sum FROM sums')).toEqual([{ sum: 22 }]);
  });

  test('write nothing when they throw', async () => {
    const job = instance().run(async (transaction) => {
      await addOne(transaction, 'agent:a', 'nobody');
      throw new Error('guilty');
    });
    await expect(job).rejects.toThrow('guilty');
    expect(await all('SELECT * FROM notes')).toEqual([]);
  });
});

suites('the positions of a job', () => {
  test('replace placeholders anywhere, and are returned as committed', async () => {
    const given = await instance().run(async (transaction) => {
      const position = await nextSerial(transaction);
      const next = await nextSerial(transaction);
      const expected = { id: `turn:${position}`, at: String(next), list: [position, { next }] };
      await transaction.execute({
        sql: 'INSERT INTO notes (position, who, body) VALUES (?, ?, ?)',
        args: [position, `turn:${position} \u0001 and what people type`, JSON.stringify(expected)],
      });
      return { ...expected, places: new Map([['a', position]]) };
    });
    const [note] = await all('SELECT * FROM notes');
    const position = Number(note?.position);
    expect(position).toBeLessThan(1e9);
    const expected = { id: `turn:${position}`, at: String(position + 1), list: [position, { next: position + 1 }] };
    expect(JSON.parse(String(note?.body))).toEqual(expected);
    expect(note?.who).toBe(`turn:${position} \u0001 and what people type`);
    expect(given).toEqual({ ...expected, places: new Map([['a', position]]) });
  });

  test('follow all earlier commits, also for more than one commit’s worth', async () => {
    const writes = instance();
    const many = async (count: number) =>
      writes.run(async (transaction) => {
        const before = await transaction.position();
        await transaction.moveTo(before + count);
        const all = JSON.stringify(Array.from({ length: 3 }, (_, index) => before + count - index));
        await transaction.execute({
          sql: `INSERT INTO notes (position, who) SELECT value, 'x' FROM json_each(?)`,
          args: [all],
        });
        return before + count;
      });
    const ends = [await many(5), await many(250_000), await many(7)];
    expect(ends.toSorted((a, b) => a - b)).toEqual(ends);
    const stored = (await all('SELECT position FROM notes ORDER BY position')).map((row) => Number(row.position));
    expect(stored).toEqual(ends.flatMap((end) => [end - 2, end - 1, end]));
  });

  test('are distinguished from similar text, which stays unchanged', async () => {
    // Leading digits that a record is bound to contain.
    const draft = new ProvisionalPositions(null, () => 0);
    const digits = String(draft.position + 77_777);
    expect(() => draft.committed({ sql: 'SELECT ?', args: [`["${digits}"]`] })).toThrow();
    const harmless = [
      `${digits}9`,
      `9${digits}`,
      `0.${digits}`,
      `${digits}.5`,
      `${digits}e3`,
      `${digits.slice(0, 15)}`,
    ];
    const json = JSON.stringify(harmless);
    expect(draft.committed({ sql: 'SELECT ?', args: [json] })).toEqual({ sql: 'SELECT ?', args: [json] });
  });

  test('can be fixed before the commit, for values derived from them', async () => {
    const [one, other] = [instance(), instance()];
    let runs = 0;
    const fixed = await one.run(async (transaction) => {
      runs += 1;
      const position = await nextSerial(transaction);
      // Other jobs commit meanwhile.
      await other.run((second) => addOne(second, 'agent:b', `other ${runs}`));
      transaction.fixPositions();
      await transaction.execute({
        sql: 'INSERT INTO notes (position, who, body) VALUES (?, ?, ?)',
        args: [position, 'fixed', [...String(position)].reverse().join('')],
      });
      return position;
    });
    expect(runs).toBe(2);
    await other.run((second) => addOne(second, 'agent:b', 'later'));
    const notes = await all('SELECT * FROM notes ORDER BY position');
    expect(notes.map(({ who }) => who)).toEqual(['other 1', 'other 2', 'fixed', 'later']);
    expect(notes[2]).toMatchObject({ position: fixed, body: [...String(fixed)].reverse().join('') });
  });
});
