import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type InProcessTarget, ingest, inProcessTarget, marker, record, sendEvents } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  target = await inProcessTarget();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

/** A trigger aborts the statement, like any error of a database. */
const refuse = (table: string, condition: string) =>
  target.database.writes.run((transaction) =>
    transaction.execute(
      `CREATE TRIGGER refuse_${table} BEFORE INSERT ON ${table} WHEN ${condition} BEGIN SELECT RAISE(ABORT, 'refused'); END`,
    ),
  );
const poison = (seq: number) => record(seq, { event: { type: 'CUSTOM', name: 'poison', value: seq } });
const rows = async (sql: string) => (await target.database.reader.execute(sql)).rows.map((row) => ({ ...row }));

describe('a record that the database refuses', () => {
  it('is quarantined, and the rest of its batch is accepted once and in order', async () => {
    await refuse('events', `NEW.payload LIKE '%poison%'`);
    const bad = new Set([3, 4, 20]);
    const records = Array.from({ length: 20 }, (_, index) =>
      bad.has(index + 1) ? poison(index + 1) : marker(index + 1),
    );
    const response = await ingest(target, records);
    expect(response).toMatchObject({ ackedSeq: 20, accepted: 17, duplicates: 0 });
    expect(response.rejected.map(({ seq, code }) => [seq, code])).toEqual([...bad].map((seq) => [seq, 'not_storable']));
    const stored = await rows(`SELECT seq FROM events WHERE payload LIKE '%marker%' ORDER BY position`);
    expect(stored.map(({ seq }) => seq)).toEqual(
      records.flatMap((_, index) => (bad.has(index + 1) ? [] : [index + 1])),
    );
    const kept = await rows('SELECT seq, code, record FROM quarantine ORDER BY position');
    expect(kept.map(({ record: json }) => JSON.parse(String(json)))).toEqual([3, 4, 20].map(poison));
    expect(await rows('SELECT last_seq, accepted, rejected FROM producers')).toEqual([
      { last_seq: 20, accepted: 17, rejected: 3 },
    ]);
    expect(await ingest(target, records)).toMatchObject({ accepted: 0, duplicates: 20 });
  });

  it('in large numbers is searched for only until a limit', async () => {
    await refuse('events', `NEW.payload LIKE '%poison%'`);
    const commits = vi.spyOn(target.database.writes, 'run');
    const records = Array.from({ length: 2_000 }, (_, index) => poison(index + 1));
    const response = await ingest(target, [...records, marker(2_001)]);
    expect(response).toMatchObject({ ackedSeq: 2_001 });
    expect(response.accepted + response.rejected.length).toBe(2_001);
    expect(commits).toHaveBeenCalledTimes(2);
    expect(await rows('SELECT count(*) AS count FROM quarantine')).toEqual([{ count: response.rejected.length }]);
  });

  it('is quarantined in part when quarantine cannot hold it whole', async () => {
    await refuse('events', `NEW.payload LIKE '%poison%'`);
    await refuse('quarantine', 'octet_length(NEW.record) > 800000');
    const large = record(1, { event: { type: 'CUSTOM', name: 'poison', value: '😀'.repeat(250_000) } });
    const response = await ingest(target, [large, marker(2)]);
    expect(response).toMatchObject({ ackedSeq: 2, accepted: 1, rejected: [{ seq: 1, code: 'not_storable' }] });
    const [kept] = await rows('SELECT record FROM quarantine');
    const { beginning, length } = JSON.parse(String(kept?.record));
    expect(JSON.stringify(large)).toHaveLength(length);
    expect(JSON.stringify(large).startsWith(beginning)).toBe(true);
    expect(beginning.isWellFormed()).toBe(true);
  });

  it('does not block other sessions of its outbox when its own session is unreadable', async () => {
    await ingest(target, [marker(1), marker(2, { sessionId: 's2' })]);
    await target.database.writes.run((transaction) =>
      transaction.execute(`UPDATE sessions SET memory = '{"cut' WHERE id = 's1'`),
    );
    const response = await ingest(target, [marker(3), marker(4, { sessionId: 's2' })]);
    expect(response).toMatchObject({ ackedSeq: 4, accepted: 1, rejected: [{ seq: 3, code: 'not_storable' }] });
  });

  it('is not quarantined while the database is only unavailable', async () => {
    const run = vi.spyOn(target.database.writes, 'run');
    run.mockRejectedValueOnce(Object.assign(new TypeError('fetch failed'), {}));
    const response = await sendEvents(target, { producer: { id: 'p1', epoch: 1 }, records: [marker(1)] });
    expect(response.status).toBeGreaterThanOrEqual(500);
    expect(run).toHaveBeenCalledTimes(1);
    expect(await rows('SELECT 1 FROM quarantine')).toEqual([]);
  });
});
