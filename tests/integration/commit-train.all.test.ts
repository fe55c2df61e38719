import { createClient, type InStatement } from '@libsql/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '@/db/open-server';
import { OptimisticWrites } from '@/db/optimistic-writes';
import type { WriteTransaction } from '@/db/writes';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';

/** Commit batching at a libSQL server: commits that are ready together share one request. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const MANY = 24;

let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
let direct: ReturnType<typeof createClient>;
let line: UnreliableProxy;
let connection: ReturnType<typeof connect>;
let writes: OptimisticWrites;
beforeAll(async () => {
  if ('missing' in ensureLibsqlServer()) return;
  libsql = await startLibsqlServer();
  direct = createClient({ url: libsql.url });
  line = await unreliableProxy(libsql.url, 1);
});
afterAll(async () => {
  direct?.close();
  await line?.close();
  await libsql?.stop();
});
beforeEach(async () => {
  await direct.batch(
    [
      ...['counter', 'touched', 'commits', 'notes'].map((table) => `DROP TABLE IF EXISTS ${table}`),
      'CREATE TABLE counter (id INTEGER PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE TABLE touched (key TEXT PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE TABLE commits (mark TEXT PRIMARY KEY, position INTEGER NOT NULL)',
      'CREATE TABLE notes (position INTEGER PRIMARY KEY, who TEXT NOT NULL UNIQUE)',
    ],
    'write',
  );
  connection = connect({ url: line.origin, authToken: undefined });
  writes = new OptimisticWrites(connection.server);
  return () => connection.close();
});

async function notes(): Promise<unknown[]> {
  const { rows } = await direct.execute('SELECT position, who FROM notes ORDER BY position');
  return rows.map((row) => ({ ...row }));
}

async function note(transaction: WriteTransaction, who: string | null): Promise<number> {
  const position = (await transaction.position()) + 1;
  await transaction.moveTo(position);
  transaction.touch(`agent:${who}`);
  await transaction.execute({ sql: 'INSERT INTO notes (position, who) VALUES (?, ?)', args: [position, who] });
  return position;
}

const names = Array.from({ length: MANY }, (_, index) => `job ${index}`);

suites('commits of an instance', () => {
  test('share a request in order when they are ready together', async () => {
    const before = line.requests;
    const positions = await Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    expect(line.requests - before).toBe(1);
    expect(await notes()).toEqual(names.map((who, index) => ({ position: positions[index], who })));
    expect(positions.toSorted((a, b) => a - b)).toEqual(positions);
  });

  test('share the next request when they become ready during one', async () => {
    const before = line.requests;
    const first = writes.run((transaction) => note(transaction, 'first'));
    await expect.poll(() => line.requests).toBe(before + 1);
    await Promise.all([first, ...names.map((who) => writes.run((transaction) => note(transaction, who)))]);
    expect(line.requests - before).toBe(2);
    expect(await notes()).toHaveLength(MANY + 1);
  });

  test('fail separately for a rejected statement, invalid SQL or an unknown argument', async () => {
    const faults: Record<number, InStatement> = {
      3: { sql: 'INSERT INTO notes (position, who) VALUES (1, ?)', args: [null] },
      4: 'INSRT INTO notes',
      9: { sql: 'INSERT INTO notes (position, who) VALUES (1, ?)', args: [Number.NaN] },
      10: `INSERT INTO notes (position, who) VALUES (1, 'job 0')`,
    };
    const outcomes = await Promise.allSettled(
      names.map((who, index) =>
        writes.run(async (transaction) => {
          await note(transaction, who);
          if (faults[index] !== undefined) await transaction.execute(faults[index]);
        }),
      ),
    );
    const refused = outcomes.flatMap((outcome, index) =>
      outcome.status === 'rejected' ? [[index, `${outcome.reason}`]] : [],
    );
    expect(refused).toEqual([
      [3, expect.stringMatching(/NOT NULL constraint failed: notes\.who/)],
      [4, expect.stringMatching(/INSRT|syntax/i)],
      [9, expect.stringMatching(/NaN/)],
      [10, expect.stringMatching(/UNIQUE constraint failed: notes\.who/)],
    ]);
    expect((await notes()).map((row) => (row as { who: string }).who)).toEqual(
      names.filter((_, index) => faults[index] === undefined),
    );
  });

  test('are planned again when an earlier commit of their request changed the same key', async () => {
    let runs = 0;
    const few = names.slice(0, 5);
    const together = gate(few.length);
    const counts = await Promise.all(
      few.map((who) =>
        writes.run(async (transaction) => {
          runs += 1;
          transaction.touch('access');
          const { rows } = await transaction.execute('SELECT count(*) AS count FROM notes');
          await together();
          await note(transaction, who);
          return Number(rows[0]?.count);
        }),
      ),
    );
    expect(counts.toSorted((a, b) => a - b)).toEqual(few.map((_, index) => index));
    expect(runs).toBeGreaterThan(few.length);
  });

  test('are looked up one by one when a response is lost, none doubled or missing', async () => {
    const before = line.lost;
    line.lose({ requests: 0, answers: 1 });
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    await expect.poll(() => line.lost).toBe(before + 1);
    line.lose({ requests: 0, answers: 0 });
    const stored = await notes();
    expect(stored).toHaveLength(MANY);
    const positions = await all;
    expect(names.map((who, index) => ({ position: positions[index], who }))).toEqual(stored);
    expect(await notes()).toEqual(stored);
  });

  test('are sent again when their request never arrived', async () => {
    const before = line.lost;
    line.lose({ requests: 1, answers: 0 });
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    await expect.poll(() => line.lost).toBe(before + 1);
    line.lose({ requests: 0, answers: 0 });
    const positions = await all;
    expect(await notes()).toEqual(names.map((who, index) => ({ position: positions[index], who })));
  });

  test('are finished before the database closes, which accepts no more', async () => {
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    const closed = writes.close();
    await expect(writes.run((transaction) => note(transaction, 'late'))).rejects.toMatchObject({ code: 'unavailable' });
    await closed;
    expect(writes.load.jobs).toBe(0);
    await all;
    expect(await notes()).toHaveLength(MANY);
  });

  test('are rejected, not left pending, when their connection closes', async () => {
    const before = line.requests;
    const first = writes.run((transaction) => note(transaction, 'first'));
    await expect.poll(() => line.requests).toBe(before + 1);
    const waiting = names.map((who) => writes.run((transaction) => note(transaction, who)));
    connection.close();
    const outcomes = await Promise.allSettled([first, ...waiting]);
    for (const outcome of outcomes.slice(1)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    }
    expect((await notes()).length).toBeLessThanOrEqual(1);
  });

  test('are not delayed by a dry run among them, which leaves no rows', async () => {
    const before = line.requests;
    const [tried] = await Promise.all([
      connection.server.trial([`INSERT INTO notes VALUES (1, 'tried') RETURNING who`]),
      ...names.map((who) => writes.run((transaction) => note(transaction, who))),
    ]);
    expect(tried.map(({ rows }) => rows[0]?.who)).toEqual(['tried']);
    expect(line.requests - before).toBe(1);
    expect(await notes()).toHaveLength(MANY);
  });

  test('wait for another holder of the lock, and complete when it is released', async () => {
    const other = await direct.transaction('write');
    await other.execute(`INSERT INTO notes VALUES (1, 'other')`);
    const before = line.requests;
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    await expect.poll(() => line.requests).toBeGreaterThan(before);
    await other.commit();
    await all;
    expect(await notes()).toHaveLength(MANY + 1);
  });
});

/** Opens for good after this many arrivals. */
function gate(count: number): () => Promise<void> {
  let arrived = 0;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    arrived += 1;
    if (arrived === count) open();
    return opened;
  };
}
