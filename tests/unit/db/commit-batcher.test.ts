import { LibsqlError } from '@libsql/client';
import { expect, test } from 'vitest';
import {
  type BatcherLimits,
  CommitBatcher,
  type TransactionOutcome,
  type WholeTransaction,
  wholeTransaction,
} from '@/db/commit-batcher';

/** A batcher whose requests are answered by hand. */
function train(limits: Partial<BatcherLimits> = {}) {
  const sent: { texts: string[]; answer(outcomes: TransactionOutcome[]): void; die(error: unknown): void }[] = [];
  const send = (load: readonly WholeTransaction[]) =>
    new Promise<TransactionOutcome[]>((answer, die) => {
      sent.push({ texts: load.map(({ statements }) => statements[0]?.sql ?? ''), answer, die });
    });
  const commits = new CommitBatcher({ send }, limits);
  return {
    sent,
    run: (...statements: string[]) => commits.run(statements, 'COMMIT'),
    /** Waits for the next request and answers it. */
    async answered(outcome: TransactionOutcome = { rows: [] }): Promise<string[]> {
      await expect.poll(() => sent.length).toBeGreaterThan(0);
      const { texts, answer } = sent.shift() as (typeof sent)[number];
      answer(texts.map(() => outcome));
      return texts;
    },
  };
}

const DEAD = new TypeError('fetch failed');
const BUSY: TransactionOutcome = { error: new LibsqlError('database is locked', 'SQLITE_BUSY'), hasBegun: false };

test('a transaction that is too large to share a request is sent alone, in order', async () => {
  const { run, answered } = train({ maxBytes: 100 });
  const heavy = `heavy ${'.'.repeat(200)}`;
  const all = Promise.all([run('a'), run(heavy), run('b'), run('c')]);
  expect([await answered(), await answered(), await answered()]).toEqual([['a'], [heavy], ['b', 'c']]);
  await all;
});

test('a request stays within its limit of statements', async () => {
  const { run, answered } = train({ maxStatements: 4 });
  const all = Promise.all([run('a', '-'), run('b', '-'), run('c', '-'), run('d', '-', '-', '-', '-')]);
  expect([await answered(), await answered(), await answered()]).toEqual([['a', 'b'], ['c'], ['d']]);
  await all;
});

test('one request is in flight at a time, unless its response is late', async () => {
  const { sent, run, answered } = train({ lateMs: 50 });
  const first = run('a');
  await expect.poll(() => sent.length).toBe(1);
  const second = run('b');
  await expect.poll(() => sent.map(({ texts }) => texts)).toEqual([['a'], ['b']]);
  await answered();
  await first;
  await answered();
  await second;
});

test('transactions with conflicts are sent again, before later ones', async () => {
  const { sent, run, answered } = train();
  const first = [run('a'), run('b')];
  await expect.poll(() => sent.length).toBe(1);
  const later = run('c');
  expect(await answered(BUSY)).toEqual(['a', 'b']);
  expect(await answered()).toEqual(['a', 'b', 'c']);
  await Promise.all([...first, later]);
});

test('a transaction with conflicts is given up after a time limit', async () => {
  const { run, answered } = train({ busyMs: 0 });
  const given = run('a');
  const refused = expect(given).rejects.toMatchObject({ code: 'SQLITE_BUSY' });
  await answered(BUSY);
  await refused;
});

test('transactions of a failed request are sent one by one, so that the failing one affects no other', async () => {
  const { sent, run, answered } = train();
  const first = Promise.allSettled(['a', 'poison', 'b'].map((text) => run(text)));
  await expect.poll(() => sent.length).toBe(1);
  sent.shift()?.die(DEAD);
  expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  const again = Promise.all(['a', 'poison', 'b', 'c', 'd'].map((text) => run(text)));
  const loads: string[][] = [];
  for (let index = 0; index < 4; index += 1) loads.push(await answered());
  expect(loads).toEqual([['a'], ['poison'], ['b'], ['c', 'd']]);
  await again;
});

test('bytes count as encoded', () => {
  const { bytes } = wholeTransaction([{ sql: '', args: [new Uint8Array(3_000)] }], 'COMMIT');
  expect(bytes).toBe(4_000);
});
