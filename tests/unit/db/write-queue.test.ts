import { fileURLToPath } from 'node:url';
import { AppError } from '@interlude/protocol/errors';
import { createClient, LibsqlError } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalConnection } from '@/db/local-connection';
import { localWriter } from '@/db/open-file';
import { type TransactionSource, WriteQueue } from '@/db/write-queue';
import type { WriteJob, WriteTransaction } from '@/db/writes';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { alwaysYield } from '../../support/event-loop';

/** A file that is never deleted or replaced. */
const IN_PLACE = { changed: async () => null, committed: () => {}, lacksOnlyItsLog: () => false };

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(() => database.dispose());

const advance: WriteJob<number> = async (tx) => {
  const sql = `INSERT INTO counter (id, position) VALUES (1, 1)
               ON CONFLICT (id) DO UPDATE SET position = position + 1 RETURNING position`;
  return Number((await tx.execute(sql)).rows[0]?.position);
};
const fail: WriteJob<never> = async (tx) => {
  await advance(tx);
  throw new Error('guilty');
};
const position = async () =>
  Number((await database.reader.execute('SELECT position FROM counter')).rows[0]?.position ?? 0);

/** Another connection that writes. */
const connect = () => new LocalConnection(fileURLToPath(database.url), 1);

/** Counts transactions on the real database. */
function counting(): { source: TransactionSource; count: () => number } {
  let count = 0;
  const writer = localWriter(connect(), IN_PLACE);
  const transaction: TransactionSource['transaction'] = (mode) => {
    count += 1;
    return writer.transaction(mode);
  };
  return { source: { transaction }, count: () => count };
}

/** Groups don't depend on the speed of the machine. */
const PATIENT = { maxGroupMs: 60_000 };

describe('the write queue', () => {
  it('commits all waiting jobs together, in order', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, PATIENT);
    const answers = await Promise.all(Array.from({ length: 50 }, () => queue.run(advance)));
    expect(answers).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(count()).toBe(1);
  });

  it('yields between the statements of all jobs', async () => {
    const { source } = counting();
    const queue = new WriteQueue(source);
    const turns = alwaysYield();
    const jobs: WriteJob<unknown>[] = [advance, (tx) => tx.batch(['SELECT 1', 'SELECT 2', 'SELECT 3']), advance];
    await Promise.all(jobs.map((job) => queue.run(job)));
    expect(turns()).toBeGreaterThanOrEqual(6);
    vi.restoreAllMocks();
  });

  it('fails the failing job alone and commits the others of its group once', async () => {
    const jobs = [advance, fail, advance, fail, advance].map((job) => database.writes.run<number>(job));
    const settled = await Promise.allSettled(jobs);
    expect(settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)))).toEqual([
      1,
      'Error: guilty',
      2,
      'Error: guilty',
      3,
    ]);
    expect(await position()).toBe(3);
  });

  it('runs each job of a group once, in one transaction, however many are refused', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, PATIENT);
    let runs = 0;
    const counted = (job: WriteJob<number>) => (tx: WriteTransaction) => {
      runs += 1;
      return job(tx);
    };
    const jobs = Array.from({ length: 50 }, (_, index) => queue.run(counted(index % 5 === 0 ? fail : advance)));
    const settled = await Promise.allSettled(jobs);
    expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(10);
    expect(await position()).toBe(40);
    expect({ runs, transactions: count() }).toEqual({ runs: 50, transactions: 1 });
  });

  it('rolls back everything a refused job wrote, even after a savepoint of its own', async () => {
    const nested: WriteJob<never> = async (tx) => {
      await tx.execute('SAVEPOINT own');
      await advance(tx);
      throw new Error('guilty');
    };
    const settled = await Promise.allSettled([advance, nested, advance].map((job) => database.writes.run<number>(job)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await position()).toBe(2);
  });

  it('runs the jobs of a group one by one when one of them ended the transaction', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, PATIENT);
    const jobs = [queue.run(advance), queue.run((tx) => tx.execute('ROLLBACK')), queue.run(advance)];
    const settled = await Promise.allSettled(jobs);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await position()).toBe(2);
    expect(count()).toBe(4);
  });

  it('hides a refusal that is based on uncommitted data', async () => {
    const writer = localWriter(connect(), IN_PLACE);
    const queue = new WriteQueue({
      transaction: async (mode) => ({
        ...(await writer.transaction(mode)),
        commit: async () => {
          throw new LibsqlError('disk I/O error', 'SQLITE_IOERR');
        },
      }),
    });
    const settled = await Promise.allSettled([queue.run(advance), queue.run(fail)]);
    for (const one of settled) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    expect(await position()).toBe(0);
  });

  it('continues after a job that breaks its own transaction', async () => {
    const broken = database.writes.run((tx) => tx.execute('ROLLBACK'));
    await expect(broken).rejects.toThrow();
    expect(await database.writes.run(advance)).toBe(1);
  });

  it('notifies listeners of each commit that moved the counter, after its jobs', async () => {
    const heard: string[] = [];
    const stop = database.onCommit((at) => heard.push(at));
    await database.writes.run(advance);
    await database.writes.run(async () => {});
    await database.writes.run(fail).catch(() => {});
    await database.writes.run(advance);
    stop();
    await database.writes.run(advance);
    expect(heard).toEqual(['1', '2']);
  });

  it('ignores a listener that throws', async () => {
    const complaint = vi.spyOn(console, 'error').mockImplementation(() => {});
    database.onCommit(() => {
      throw new Error('deaf');
    });
    const heard: string[] = [];
    database.onCommit((at) => heard.push(at));
    await database.writes.run(advance);
    expect(heard).toEqual(['1']);
    expect(complaint).toHaveBeenCalledOnce();
    complaint.mockRestore();
  });

  it('waits for another process that locks the database, without blocking this one', async () => {
    const other = createClient({ url: database.url, concurrency: 1 });
    const lock = await other.transaction('write');
    let beats = 0;
    const beating = setInterval(() => {
      beats += 1;
      if (beats === 10) void lock.commit();
    }, 10);
    expect(await database.writes.run(advance)).toBe(1);
    expect(beats).toBeGreaterThanOrEqual(10);
    clearInterval(beating);
    other.close();
  });

  it('answers unavailable with Retry-After while the database is locked, and works again afterwards', async () => {
    const other = createClient({ url: database.url, concurrency: 1 });
    const queue = new WriteQueue(localWriter(connect(), IN_PLACE), { busyTimeoutMs: 30 });
    const lock = await other.transaction('write');
    const refused = await queue.run(advance).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(AppError);
    expect(refused).toMatchObject({ code: 'unavailable', headers: { 'retry-after': '1' } });
    await lock.rollback();
    expect(await queue.run(advance)).toBe(1);
    other.close();
  });

  it('accepts limited jobs and weight, but always one', async () => {
    const unavailable = { code: 'unavailable', headers: { 'retry-after': '1' } };
    const few = new WriteQueue(counting().source, { maxJobs: 2 });
    const jobs = [few.run(advance), few.run(advance), few.run(advance)];
    await expect(jobs[2]).rejects.toMatchObject(unavailable);
    await Promise.all(jobs.slice(0, 2));
    const light = new WriteQueue(counting().source, { maxBytes: 10 });
    const heavy = light.run(advance, { bytes: 100 });
    await expect(light.run(advance, { bytes: 1 })).rejects.toMatchObject(unavailable);
    await heavy;
    expect(await light.run(advance, { bytes: 100 })).toBe(4);
  });

  it('limits the weight of a transaction', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, { ...PATIENT, maxGroupBytes: 10 });
    await Promise.all([4, 4, 4, 50, 1].map((bytes) => queue.run(advance, { bytes })));
    expect(count()).toBe(4);
    expect(await position()).toBe(5);
  });

  it('limits the jobs of a transaction', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, { ...PATIENT, maxGroupJobs: 2 });
    await Promise.all(Array.from({ length: 5 }, () => queue.run(advance)));
    expect(count()).toBe(3);
  });

  it('commits at its time limit and continues with the rest in order', async () => {
    const { source, count } = counting();
    const queue = new WriteQueue(source, { maxGroupMs: 0, maxBytes: 10 });
    const answers = await Promise.all([3, 3, 3].map((bytes) => queue.run(advance, { bytes })));
    expect(answers).toEqual([1, 2, 3]);
    expect(count()).toBe(3);
    // nothing counts as waiting any more
    await Promise.all([5, 5].map((bytes) => queue.run(advance, { bytes })));
  });

  it('finishes waiting jobs when it closes, and refuses later ones', async () => {
    const waiting = database.writes.run(advance);
    await database.writes.close();
    expect(await waiting).toBe(1);
    await expect(database.writes.run(advance)).rejects.toMatchObject({ code: 'unavailable' });
  });
});
