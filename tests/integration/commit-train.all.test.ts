import { createClient, type InStatement } from '@libsql/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '@/db/open-server';
import { OptimisticWrites } from '@/db/optimistic-writes';
import type { WriteTransaction } from '@/db/writes';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';

/** What one instance commits at a libSQL server: those that are ready together share a request, and nothing else. */
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

const names = Array.from({ length: MANY }, (_, at) => `job ${at}`);

suites('commits of one instance', () => {
  test('that are ready together share a request, in the order in which they became ready', async () => {
    const before = line.requests;
    const positions = await Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    expect(line.requests - before).toBe(1);
    expect(await notes()).toEqual(names.map((who, at) => ({ position: positions[at], who })));
    expect(positions.toSorted((a, b) => a - b)).toEqual(positions);
  });

  test('that become ready while a request is under way share the next one', async () => {
    const before = line.requests;
    const first = writes.run((transaction) => note(transaction, 'first'));
    await expect.poll(() => line.requests).toBe(before + 1);
    await Promise.all([first, ...names.map((who) => writes.run((transaction) => note(transaction, who)))]);
    expect(line.requests - before).toBe(2);
    expect(await notes()).toHaveLength(MANY + 1);
  });

  test('fail alone: by a statement that is refused, one that is none, or an argument that nobody takes', async () => {
    const faults: Record<number, InStatement> = {
      3: { sql: 'INSERT INTO notes (position, who) VALUES (1, ?)', args: [null] },
      4: 'INSRT INTO notes',
      9: { sql: 'INSERT INTO notes (position, who) VALUES (1, ?)', args: [Number.NaN] },
      10: `INSERT INTO notes (position, who) VALUES (1, 'job 0')`,
    };
    const outcomes = await Promise.allSettled(
      names.map((who, at) =>
        writes.run(async (transaction) => {
          await note(transaction, who);
          if (faults[at] !== undefined) await transaction.execute(faults[at]);
        }),
      ),
    );
    const refused = outcomes.flatMap((outcome, at) =>
      outcome.status === 'rejected' ? [[at, `${outcome.reason}`]] : [],
    );
    expect(refused).toEqual([
      [3, expect.stringMatching(/NOT NULL constraint failed: notes\.who/)],
      [4, expect.stringMatching(/INSRT|syntax/i)],
      [9, expect.stringMatching(/NaN/)],
      [10, expect.stringMatching(/UNIQUE constraint failed: notes\.who/)],
    ]);
    expect((await notes()).map((row) => (row as { who: string }).who)).toEqual(
      names.filter((_, at) => faults[at] === undefined),
    );
  });

  test('are beaten within a request by those before them that touch the same, and then plan again', async () => {
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
    expect(counts.toSorted((a, b) => a - b)).toEqual(few.map((_, at) => at));
    expect(runs).toBeGreaterThan(few.length);
  });

  test('are asked for one by one when the answer to their request is lost: none is doubled, and none missing', async () => {
    const before = line.lost;
    line.lose({ requests: 0, answers: 1 });
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    await expect.poll(() => line.lost).toBe(before + 1);
    line.lose({ requests: 0, answers: 0 });
    const stored = await notes();
    expect(stored).toHaveLength(MANY);
    const positions = await all;
    expect(names.map((who, at) => ({ position: positions[at], who }))).toEqual(stored);
    expect(await notes()).toEqual(stored);
  });

  test('that were sent and never arrived are sent again', async () => {
    const before = line.lost;
    line.lose({ requests: 1, answers: 0 });
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    await expect.poll(() => line.lost).toBe(before + 1);
    line.lose({ requests: 0, answers: 0 });
    const positions = await all;
    expect(await notes()).toEqual(names.map((who, at) => ({ position: positions[at], who })));
  });

  test('that wait are finished before it closes, and no more is taken', async () => {
    const all = Promise.all(names.map((who) => writes.run((transaction) => note(transaction, who))));
    const closed = writes.close();
    await expect(writes.run((transaction) => note(transaction, 'late'))).rejects.toMatchObject({ code: 'unavailable' });
    await closed;
    expect(writes.load.jobs).toBe(0);
    await all;
    expect(await notes()).toHaveLength(MANY);
  });

  test('that wait when their connection is closed are answered, and not left waiting', async () => {
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

  test('are not kept back by a trial among them, which leaves nothing behind', async () => {
    const before = line.requests;
    const [tried] = await Promise.all([
      connection.server.trial([`INSERT INTO notes VALUES (1, 'tried') RETURNING who`]),
      ...names.map((who) => writes.run((transaction) => note(transaction, who))),
    ]);
    expect(tried.map(({ rows }) => rows[0]?.who)).toEqual(['tried']);
    expect(line.requests - before).toBe(1);
    expect(await notes()).toHaveLength(MANY);
  });

  test('wait for another that holds the lock, and are done when it lets go', async () => {
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

/** Opens when so many have come to it, for good. */
function gate(count: number): () => Promise<void> {
  let come = 0;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    come += 1;
    if (come === count) open();
    return opened;
  };
}
