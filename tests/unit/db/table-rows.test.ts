import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { insights, runners } from '@/db/schema';
import { RowWriter, shapeOf, shapeWithout } from '@/db/table-rows';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

let database: TestDatabase;
beforeEach(async () => {
  database = await temporaryDatabase();
});
afterEach(() => database.dispose());

const INSIGHT = shapeOf(insights);
const INSIGHTS = new RowWriter(insights, { same: ['agentId'], lacks: ['seenAt'] });
const insight = {
  position: 1,
  sessionId: null,
  signal: 'hook_fatal',
  source: 'stop',
  detail: '',
  occurredAt: 1_795_170_167_743,
  value: null,
  outcome: null,
  isFailure: true,
};
const write = (rows: (typeof insight)[]) =>
  database.writes.run((transaction) => transaction.batch([...INSIGHTS.rows(rows, (row) => row, { agentId: 'a' })]));
const stored = async () => INSIGHT.all(await database.reader.execute('SELECT * FROM insights ORDER BY position'));

describe('rows of a table', () => {
  it('are read as they were written, with common values, and with defaults for missing columns', async () => {
    const rows = [insight, { ...insight, position: 2, isFailure: false }];
    await write(rows);
    expect(await stored()).toEqual(rows.map((row) => ({ ...row, agentId: 'a', seenAt: null })));
  });

  it.each([0, false, '', 'text', 1.5, null, 'null'])('keep the JSON value %j as it is', async (value) => {
    const writer = new RowWriter(insights);
    const row = { ...insight, agentId: 'a', seenAt: null, value };
    await database.writes.run((transaction) => transaction.execute(writer.one(row)));
    expect((await stored())[0]?.value).toBe(value);
  });

  it('hold no text that a column cannot store', async () => {
    await write([{ ...insight, detail: 'a\0b', source: 'half \ud83c' }]);
    expect((await stored())[0]).toMatchObject({ detail: 'a\ufffdb', source: 'half \ufffd' });
  });

  it('replace an existing one except its kept columns, or fail where none may exist', async () => {
    const writer = new RowWriter(runners, { keeps: ['startedAt'] });
    const row = {
      agentId: 'a',
      runnerId: 'r1',
      startedAt: 1,
      streamId: 's1',
      aliveUntil: 5,
      missedAt: null,
      missedPosition: null,
      absenceDueAt: null,
      isOver: false,
      firstConnectedAt: 1,
      firstConnectedPosition: 1,
    };
    const put = (one: typeof row) => database.writes.run((transaction) => transaction.execute(writer.one(one)));
    await put(row);
    await put({ ...row, startedAt: 2, streamId: 's2' });
    const found = await database.reader.execute('SELECT * FROM runners');
    expect(shapeOf(runners).all(found)).toEqual([{ ...row, streamId: 's2' }]);
    await write([insight]);
    await expect(write([insight])).rejects.toThrow(/UNIQUE/);
  });

  it('are read by the named columns, also under an alias of their table', async () => {
    await write([insight]);
    const shape = shapeWithout(insights, 'agentId', 'sessionId', 'detail', 'value', 'outcome', 'seenAt', 'occurredAt');
    expect(shape.columns('i')).toBe('i.position, i.signal, i.source, i.is_failure');
    const found = await database.reader.execute(`SELECT ${shape.columns('i')} FROM insights AS i`);
    expect(shape.first(found)).toEqual({ position: 1, signal: 'hook_fatal', source: 'stop', isFailure: true });
    expect(() => INSIGHT.first(found)).toThrow('The column agent_id was not selected');
  });
});
