import { type Candidate, candidateOf, planAppend, type QueueEnd } from '@interlude/runner/outbox/append-plan';
import { describe, expect, test } from 'vitest';

const empty: QueueEnd = { seq: 0, rows: 0, bytes: 0, openLosts: new Map() };
const roomy = { maxRows: 1_000, maxBytes: 1_000_000_000 };

function candidate(kind: string, sessionId?: string, bytes = 10): Candidate {
  const body = JSON.stringify({ kind, sessionId });
  return { kind, agentId: 'a1', sessionId, occurredAt: 7, body, bytes };
}

/** A candidate whose ids have more bytes than characters. */
const wide = (sessionId: string): Candidate => ({ ...candidate('event', sessionId), agentId: 'агент' });

const lostIn = (body: string) => JSON.parse(body) as { sessionId?: string; lost: { count: number; reason: string } };

describe('accepting records', () => {
  test('numbers every record while there is room', () => {
    const { rows, after, dropped } = planAppend({ ...empty, seq: 41 }, [candidate('event'), candidate('log')], roomy);
    expect(rows.map((row) => [row.seq, row.kind])).toEqual([
      [42, 'event'],
      [43, 'log'],
    ]);
    expect(after).toMatchObject({ seq: 43, rows: 2, bytes: 20 });
    expect(dropped).toBe(0);
  });

  test('keeps a line about a failure when other log lines are dropped', () => {
    const bound = { maxRows: 10, maxBytes: 1_000_000 };
    const full = { ...empty, seq: 9, rows: 9 };
    expect(planAppend(full, [candidate('log')], bound).dropped).toBe(1);
    expect(planAppend(full, [{ ...candidate('log'), isFailure: true }], bound).dropped).toBe(0);
  });

  test('drops the outbox’s own lines silently', () => {
    const own = {
      kind: 'log',
      agentId: 'a1',
      occurredAt: 7,
      log: { level: 'error', component: 'outbox', message: 'm' },
    };
    const full = { ...empty, seq: 10, rows: 10 };
    const { dropped, rows } = planAppend(full, [candidateOf(JSON.stringify(own))], {
      maxRows: 10,
      maxBytes: 1_000_000,
    });
    expect([dropped, rows.map(({ kind }) => kind)]).toEqual([0, ['lost']]);
  });

  test('drops log lines but no events above nine tenths', () => {
    const before = { ...empty, seq: 9, rows: 9 };
    const { rows, dropped } = planAppend(before, [candidate('log'), candidate('event')], { ...roomy, maxRows: 11 });
    expect(rows.map((row) => row.kind)).toEqual(['lost', 'event']);
    expect(dropped).toBe(1);
  });

  test('drops only task output above a half', () => {
    const output = candidateOf(
      JSON.stringify({ kind: 'event', agentId: 'a1', occurredAt: 7, event: { type: 'CUSTOM', name: 'task:output' } }),
    );
    const bound = { ...roomy, maxRows: 20 };
    const { rows, dropped } = planAppend({ ...empty, seq: 9, rows: 9 }, [output], bound);
    expect([rows.map((row) => row.kind), dropped]).toEqual([['event'], 0]);
    const fuller = planAppend({ ...empty, seq: 10, rows: 10 }, [output, candidate('event'), candidate('log')], bound);
    expect(fuller.rows.map((row) => row.kind)).toEqual(['lost', 'event', 'log']);
    expect(fuller.dropped).toBe(1);
  });

  test('limits bytes like rows', () => {
    const { rows } = planAppend(empty, [candidate('event', 's', 60), candidate('event', 's', 60)], {
      ...roomy,
      maxBytes: 100,
    });
    expect(rows.map((row) => row.kind)).toEqual(['event', 'lost']);
  });

  test('accepts a lost record of a source even when full', () => {
    const { rows } = planAppend({ ...empty, rows: 50 }, [candidate('lost')], { ...roomy, maxRows: 10 });
    expect(rows.map((row) => row.kind)).toEqual(['lost']);
  });
});

describe('declaring losses', () => {
  const full = { ...roomy, maxRows: 0 };

  test('counts consecutive drops in one record per session', () => {
    const drops = ['s1', 's2', 's1', 's1'].map((id) => candidate('event', id));
    const { rows, after } = planAppend(empty, drops, full);
    expect(rows.map((row) => [lostIn(row.body).sessionId, lostIn(row.body).lost.count])).toEqual([
      ['s1', 3],
      ['s2', 1],
    ]);
    expect(after).toMatchObject({ seq: 2, rows: 2 });
  });

  test('updates the stored record after a later drop', () => {
    const first = planAppend(empty, [candidate('event', 's1')], full);
    const second = planAppend(first.after, [candidate('event', 's1'), candidate('event', 's1')], full);
    expect(second.rows).toEqual([]);
    expect([...second.changes].map(([seq, { body }]) => [seq, lostIn(body).lost])).toEqual([
      [1, { count: 3, reason: 'outbox-full' }],
    ]);
  });

  test('counts the bytes of its records, also after an update', () => {
    const drops = (count: number) => Array.from({ length: count }, () => wide('сеанс'));
    const first = planAppend(empty, drops(9), full);
    expect(first.after.bytes).toBe(Buffer.byteLength(first.rows[0]?.body ?? ''));
    expect(first.rows[0]?.bytes).toBe(first.after.bytes);
    const second = planAppend(first.after, drops(1), full);
    expect(second.after.bytes).toBe(first.after.bytes + 1);
    expect(second.changes.get(1)?.bytes).toBe(second.after.bytes);
  });

  test('declares a drop in its own place after stored records', () => {
    const first = planAppend(empty, [candidate('event', 's1')], full);
    const second = planAppend(first.after, [candidate('event', 's1'), candidate('event', 's1')], {
      ...roomy,
      maxRows: 2,
    });
    expect(second.rows.map((row) => [row.seq, row.kind])).toEqual([
      [2, 'event'],
      [3, 'lost'],
    ]);
    expect(second.changes.size).toBe(0);
  });

  test('keeps a record that fits no request under the number of its declaration', () => {
    const { rows, poisoned } = planAppend(empty, [candidate('event', 's1', 9_000_000)], roomy);
    expect(lostIn(rows[0]?.body ?? '').lost).toEqual({ count: 1, reason: 'record-too-large' });
    expect(poisoned.map(({ seq }) => seq)).toEqual([1]);
  });
});
