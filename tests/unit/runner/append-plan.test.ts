import { type Candidate, candidateOf, planAppend, type QueueEnd } from '@interlude/runner/outbox/append-plan';
import { describe, expect, test } from 'vitest';

const empty: QueueEnd = { seq: 0, rows: 0, bytes: 0, openLosts: new Map() };
const roomy = { maxRows: 1_000, maxBytes: 1_000_000_000 };

function candidate(kind: string, sessionId?: string, bytes = 10): Candidate {
  const body = JSON.stringify({ kind, sessionId });
  return { kind, agentId: 'a1', sessionId, occurredAt: 7, body, bytes };
}

/** Whose ids take more bytes than characters. */
const wide = (sessionId: string): Candidate => ({ ...candidate('event', sessionId), agentId: 'агент' });

const lostIn = (body: string) => JSON.parse(body) as { sessionId?: string; lost: { count: number; reason: string } };

describe('what an outbox takes', () => {
  test('given room, every record gets the next number', () => {
    const { rows, after, dropped } = planAppend({ ...empty, seq: 41 }, [candidate('event'), candidate('log')], roomy);
    expect(rows.map((row) => [row.seq, row.kind])).toEqual([
      [42, 'event'],
      [43, 'log'],
    ]);
    expect(after).toMatchObject({ seq: 43, rows: 2, bytes: 20 });
    expect(dropped).toBe(0);
  });

  test('where mere log lines find no room any more, one that tells of a failure does', () => {
    const bound = { maxRows: 10, maxBytes: 1_000_000 };
    const full = { ...empty, seq: 9, rows: 9 };
    expect(planAppend(full, [candidate('log')], bound).dropped).toBe(1);
    expect(planAppend(full, [{ ...candidate('log'), isFailure: true }], bound).dropped).toBe(0);
  });

  test('of the outbox’s own lines that find no room it says nothing: each would be the next one’s reason', () => {
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

  test('given nine tenths full, log lines are dropped and events are not', () => {
    const before = { ...empty, seq: 9, rows: 9 };
    const { rows, dropped } = planAppend(before, [candidate('log'), candidate('event')], { ...roomy, maxRows: 11 });
    expect(rows.map((row) => row.kind)).toEqual(['lost', 'event']);
    expect(dropped).toBe(1);
  });

  test('given half full, what tasks wrote is dropped, and neither events nor log lines are', () => {
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

  test('the bytes count as the rows do', () => {
    const { rows } = planAppend(empty, [candidate('event', 's', 60), candidate('event', 's', 60)], {
      ...roomy,
      maxBytes: 100,
    });
    expect(rows.map((row) => row.kind)).toEqual(['event', 'lost']);
  });

  test('a lost record of a source is let in however full it is', () => {
    const { rows } = planAppend({ ...empty, rows: 50 }, [candidate('lost')], { ...roomy, maxRows: 10 });
    expect(rows.map((row) => row.kind)).toEqual(['lost']);
  });
});

describe('what it declares', () => {
  const full = { ...roomy, maxRows: 0 };

  test('drops in a row are counted into one record for each session', () => {
    const drops = ['s1', 's2', 's1', 's1'].map((id) => candidate('event', id));
    const { rows, after } = planAppend(empty, drops, full);
    expect(rows.map((row) => [lostIn(row.body).sessionId, lostIn(row.body).lost.count])).toEqual([
      ['s1', 3],
      ['s2', 1],
    ]);
    expect(after).toMatchObject({ seq: 2, rows: 2 });
  });

  test('a drop that follows later changes the record that is in the file', () => {
    const first = planAppend(empty, [candidate('event', 's1')], full);
    const second = planAppend(first.after, [candidate('event', 's1'), candidate('event', 's1')], full);
    expect(second.rows).toEqual([]);
    expect([...second.changes].map(([seq, { body }]) => [seq, lostIn(body).lost])).toEqual([
      [1, { count: 3, reason: 'outbox-full' }],
    ]);
  });

  test('what it declares is counted in bytes, also where it declares more later', () => {
    const drops = (count: number) => Array.from({ length: count }, () => wide('сеанс'));
    const first = planAppend(empty, drops(9), full);
    expect(first.after.bytes).toBe(Buffer.byteLength(first.rows[0]?.body ?? ''));
    expect(first.rows[0]?.bytes).toBe(first.after.bytes);
    const second = planAppend(first.after, drops(1), full);
    expect(second.after.bytes).toBe(first.after.bytes + 1);
    expect(second.changes.get(1)?.bytes).toBe(second.after.bytes);
  });

  test('once something was stored behind it, a new drop is declared anew, at its own place', () => {
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

  test('a record that no request can hold is kept aside under the number of its declaration', () => {
    const { rows, poisoned } = planAppend(empty, [candidate('event', 's1', 9_000_000)], roomy);
    expect(lostIn(rows[0]?.body ?? '').lost).toEqual({ count: 1, reason: 'record-too-large' });
    expect(poisoned.map(({ seq }) => seq)).toEqual([1]);
  });
});
