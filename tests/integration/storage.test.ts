import type { Storage, StoragePart, StorageSizes } from '@interlude/protocol/storage';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TtlCache } from '@/lib/server/access/ttl-cache';
import { estimateTables, measureTables, readStorage } from '@/lib/server/queries/read-storage';
import { temporaryDatabase } from '../support/database';
import { PopulatedDatabase } from '../support/populated-database';

let used: PopulatedDatabase;
beforeAll(async () => {
  used = await PopulatedDatabase.start();
});
afterAll(() => used.stage.close());

const sumOf = (parts: readonly { bytes: number }[]) => parts.reduce((sum, { bytes }) => sum + bytes, 0);
const partIn = ({ parts }: StorageSizes, name: string): StoragePart | undefined =>
  parts.find((part) => part.name === name);

test('GET /storage attributes every byte of the database to a purpose', async () => {
  const storage = await used.stage.ask<Storage>('/storage');
  const { rows } = await used.stage.parts.database.reader.execute(
    'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
  );
  expect(storage).toMatchObject({ bytes: rows[0]?.bytes, method: 'measured' });
  expect(sumOf(storage.parts) + storage.freeBytes).toBe(storage.bytes);
  for (const part of storage.parts.filter(({ name }) => name !== 'rest')) expect(sumOf(part.tables)).toBe(part.bytes);
  const [events, search] = [partIn(storage, 'events'), partIn(storage, 'search')];
  expect(events?.tables).toMatchObject([{ name: 'events' }]);
  expect(events?.tables[0]?.indexBytes).toBeGreaterThan(4096 * 4);
  expect(search?.tables.map(({ name }) => name)).toContain('log_search_data');
  // A table without a purpose would hide there.
  const rest = partIn(storage, 'rest')?.tables.map(({ name }) => name) ?? [];
  const known = ['__drizzle_migrations', 'commits', 'compatibility', 'counter', 'leases', 'sqlite_schema', 'touched'];
  expect(rest.filter((name) => !known.includes(name))).toEqual([]);
});

test('GET /storage returns the retention periods', async () => {
  const { retention } = await used.stage.ask<Storage>('/storage');
  expect(retention).toMatchObject({ elsewhereDays: 90, auditDays: 400, maxBytes: null });
  expect(retention.days).toMatchObject({ working: 90, exited: 90 });
  expect(retention.logs).toEqual({ days: 14, maxBytes: 256 * 1024 * 1024 });
});

test('GET /storage caches its measurement for a while', async () => {
  const database = await temporaryDatabase();
  let now = 1_000_000;
  const kept = new TtlCache<StorageSizes>();
  const ask = () => readStorage(database.reader, () => now, kept);
  const [first, beside] = await Promise.all([ask(), ask()]);
  expect(beside).toBe(first);
  now += 59_000;
  expect(await ask()).toBe(first);
  now += 2_000;
  expect((await ask()).at).toBe(now);
  await database.dispose();
});

test('GET /storage returns estimates, marked as such, when the database can’t measure its tables', async () => {
  const { reader } = used.stage.parts.database;
  const mute = {
    ...reader,
    execute: async (statement: Parameters<typeof reader.execute>[0]) => {
      if (JSON.stringify(statement).includes('dbstat')) throw new Error('SQLITE_ERROR: no such table: dbstat');
      return reader.execute(statement);
    },
  };
  const storage = await readStorage(mute as typeof reader, Date.now, new TtlCache());
  expect(storage.method).toBe('estimated');
  const whole = storage.bytes - storage.freeBytes;
  expect(Math.abs(sumOf(storage.parts) - whole)).toBeLessThan(100);
});

test('estimates are close to measurements for many rows', async () => {
  const { database } = used.stage.parts;
  await database.writes.run((transaction) =>
    transaction.execute(`INSERT INTO events (position, session_id, agent_id, producer_id, epoch, seq, occurred_at,
        received_at, type, entity_id, turn_id, payload)
      WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 20000)
      SELECT 1000000 + value * 3, 'worker-a', 'worker', 'worker', 0, value, 1, 1, 'TEXT_MESSAGE_CONTENT', 'm' || value, 'worker-a-2',
        json_object('type', 'TEXT_MESSAGE_CONTENT', 'delta', printf('%.*c', value % 400, 'x')) FROM n`),
  );
  const measured = await measureTables(database.reader);
  const whole = sumOf(measured ?? []);
  const estimated = await estimateTables(database.reader, whole);
  const sizeIn = (tables: readonly { name: string; bytes: number }[] | null) =>
    tables?.find(({ name }) => name === 'events')?.bytes ?? 0;
  expect(sizeIn(estimated) / sizeIn(measured)).toBeGreaterThan(0.8);
  expect(sizeIn(estimated) / sizeIn(measured)).toBeLessThan(1.25);
});
