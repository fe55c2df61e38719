import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, createClient, LibsqlError } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServerLease } from '@/db/lease';
import { NEWEST_MIGRATION } from '@/db/migrate';
import type { BatchServer } from '@/db/optimistic-transaction';
import { OptimisticWrites } from '@/db/optimistic-writes';
import type { TransactionSource } from '@/db/write-queue';
import type { WriteTransaction } from '@/db/writes';
import { createMigratedFile } from '@/tests/support/database';
import { tempDir } from '../../support/temp-dir';

/** Writes of several instances to one server, which is a file behind a connection that may lose a response. */
let client: Client;
let server: BatchServer & TransactionSource;
/** Called after each write. */
let answered: () => void;

beforeEach(async () => {
  const path = join(await tempDir(), 'interlude.db');
  await createMigratedFile(path);
  client = createClient({ url: pathToFileURL(path).href });
  await client.execute('CREATE TABLE sums (key TEXT PRIMARY KEY, sum INTEGER NOT NULL)');
  answered = () => {};
  server = {
    batch: async (statements, mode) => {
      const answers = await client.batch(statements, mode);
      if (mode === 'write') answered();
      return answers;
    },
    trial: async (statements) => {
      const transaction = await client.transaction('write');
      const answers = await transaction.batch(statements);
      await transaction.rollback();
      return answers;
    },
    transaction: (mode) => client.transaction(mode),
  };
});
afterEach(() => client.close());

const instance = () => new OptimisticWrites(server, { version: NEWEST_MIGRATION });

/** Reads a sum, waits, and writes a new one. @returns the sum */
async function addOne(transaction: WriteTransaction, thinks: () => Promise<unknown> = async () => {}) {
  transaction.touch('agent:a');
  const { rows } = await transaction.execute(`SELECT sum FROM sums WHERE key = 'a'`);
  await thinks();
  const sum = Number(rows[0]?.sum ?? 0) + 1;
  await transaction.execute({ sql: `INSERT OR REPLACE INTO sums (key, sum) VALUES ('a', ?)`, args: [sum] });
  return sum;
}

const sums = async () => (await client.execute('SELECT sum FROM sums')).rows.map(({ sum }) => sum);

describe('a write', () => {
  test('runs again when another instance touched the same key after its read', async () => {
    const [one, other] = [instance(), instance()];
    let runs = 0;
    const sum = await one.run((transaction) =>
      addOne(transaction, async () => {
        runs += 1;
        if (runs === 1) await other.run((between) => addOne(between));
      }),
    );
    expect([runs, sum, await sums()]).toEqual([2, 2, [2]]);
  });

  test('is committed once when its response is lost', async () => {
    let lost = 0;
    answered = () => {
      if (lost > 0) return;
      lost += 1;
      throw new LibsqlError('the connection broke', 'ECONNRESET');
    };
    await instance().run((transaction) => addOne(transaction));
    expect([lost, await sums()]).toEqual([1, [1]]);
  });

  test('is refused once a newer version excludes this one', async () => {
    await client.execute({ sql: 'UPDATE compatibility SET oldest_writer = ?', args: [NEWEST_MIGRATION + 1] });
    await expect(instance().run((transaction) => addOne(transaction))).rejects.toMatchObject({ code: 'unavailable' });
    expect(await sums()).toEqual([]);
  });
});

describe('a lease', () => {
  test('is held by one instance until it releases it', async () => {
    const [one, other] = [new ServerLease(server, 'history'), new ServerLease(server, 'history')];
    expect([await one.acquire(), await other.acquire(), await one.acquire()]).toEqual([true, false, true]);
    expect(await other.sinceLastRunMs()).toBeNull();
    await one.release(0);
    expect(await other.sinceLastRunMs()).toBeGreaterThanOrEqual(0);
    expect([await other.acquire(), await one.acquire()]).toEqual([true, false]);
  });

  test('is held by one of two instances that find it free at once', async () => {
    const [one, other] = [new ServerLease(server, 'history'), new ServerLease(server, 'history')];
    expect(await Promise.all([one.acquire(), other.acquire()])).toEqual([true, false]);
  });

  test('passes to another instance when its term expired', async () => {
    const [one, other] = [new ServerLease(server, 'history'), new ServerLease(server, 'history')];
    await one.acquire();
    await client.execute('UPDATE leases SET until = 0');
    expect([await other.acquire(), await one.acquire()]).toEqual([true, false]);
  });

  test('does not block other jobs', async () => {
    await new ServerLease(server, 'history').acquire();
    expect(await new ServerLease(server, 'sweep').acquire()).toBe(true);
  });
});
