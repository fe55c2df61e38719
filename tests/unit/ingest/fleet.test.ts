import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { agentFromRow, producerFromRow, sessionFromRow } from '@/db/read-model-rows';
import {
  errorOf,
  type InProcessTarget,
  ingest,
  inProcessTarget,
  marker,
  record,
  sendEvents,
} from '../../support/ingest-target';

let target: InProcessTarget;
let now: number;
beforeEach(async () => {
  now = 1_795_170_000_000;
  target = await inProcessTarget(() => now);
});
afterEach(async () => {
  vi.useRealTimers();
  await target.close();
});

const select = async (sql: string) => (await target.database.reader.execute(sql)).rows;
const session = async (id = 's1') =>
  (await select('SELECT * FROM sessions')).map(sessionFromRow).find((row) => row.id === id);
const agent = async (id = 'a1') =>
  (await select('SELECT * FROM agents')).map(agentFromRow).find((row) => row.id === id);
const producer = async () => (await select('SELECT * FROM producers')).map(producerFromRow)[0];
const events = async (sessionId: string) =>
  (await select('SELECT * FROM events ORDER BY position'))
    .filter((row) => row.session_id === sessionId)
    .map((row) => JSON.parse(String(row.payload)));
const status = (seq: number, fields: Record<string, unknown> = {}) =>
  record(seq, { kind: 'status', status: { kind: 'claude' }, ...fields });
const delta = (seq: number): Record<string, unknown> =>
  record(seq, {
    occurredAt: now,
    event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: `${seq} ` } satisfies AgUiEvent,
  });

describe('positions', () => {
  it('follow seq across events, log lines and quarantine, with changed read models last', async () => {
    const log = record(2, { kind: 'log', log: { level: 'info', component: 'c', message: 'm' } });
    const task = record(4, { event: { type: 'CUSTOM', name: 'task:started', value: { task_id: 't' } } });
    const { position } = await ingest(target, [marker(1), log, marker(3, { kind: '?' }), task]);
    expect((await select('SELECT position FROM events ORDER BY 1')).map((row) => row.position)).toEqual([1, 4, 5]);
    expect((await select('SELECT position FROM log_lines'))[0]?.position).toBe(2);
    expect((await select('SELECT position FROM quarantine'))[0]?.position).toBe(3);
    expect((await select('SELECT updated_position FROM tasks'))[0]?.updated_position).toBe(6);
    expect((await session())?.updatedPosition).toBe('7');
    expect((await agent())?.updatedPosition).toBe('8');
    expect((await select('SELECT updated_position FROM inbox'))[0]?.updated_position).toBe(9);
    expect(position).toBe('9');
  });
});

describe('a status record', () => {
  it('creates its session before the first event', async () => {
    await ingest(target, [status(1)]);
    expect(await session()).toMatchObject({
      id: 's1',
      agentId: 'a1',
      state: 'starting',
      turnCount: 0,
      updatedPosition: '1',
    });
    expect(await agent()).toMatchObject({ kind: 'claude', status: { kind: 'claude' }, sessionCount: 1 });
    expect(await events('s1')).toEqual([]);
  });

  it('is the newest by seq, and a later one without a kind keeps the kind', async () => {
    await ingest(target, [status(1), status(2, { status: { state: 'busy' } })]);
    expect(await agent()).toMatchObject({ kind: 'claude', status: { state: 'busy' }, statusAt: 1_795_170_000_002 });
  });

  const sentAtOnce = { kind: 'claude', outbox: { depth: 0, oldestAgeMs: null, poisoned: 0, lost: 0 } };

  it.each([420_000, -420_000])(
    'measures a clock %i ms ahead, ignores delays, and clears the skew once the clock is set',
    async (skew) => {
      await ingest(target, [status(1, { occurredAt: now + skew, status: sentAtOnce })]);
      expect(await agent()).toMatchObject({ clockSkewMs: skew });
      // delivered 1.5 s late, and an event that waited in the outbox for an hour
      await ingest(target, [
        status(2, { occurredAt: now + skew - 1_500, status: sentAtOnce }),
        record(3, { occurredAt: now + skew - 3_600_000 }),
      ]);
      expect(await agent()).toMatchObject({ clockSkewMs: skew });
      await ingest(target, [status(4, { occurredAt: now - 1_500 })]);
      expect(await agent()).not.toHaveProperty('clockSkewMs');
    },
  );

  it.each([
    ['behind older records', { outbox: { depth: 3, oldestAgeMs: 7_200_000, poisoned: 0, lost: 0 } }],
    ['of a runner that does not report its outbox', {}],
  ])('does not mistake a wait for a slow clock: a record %s', async (_, fields) => {
    await ingest(target, [status(1, { occurredAt: now - 7_200_000, status: fields })]);
    expect(await agent()).not.toHaveProperty('clockSkewMs');
    await ingest(target, [status(2, { occurredAt: now + 420_000, status: fields })]);
    expect(await agent()).toMatchObject({ clockSkewMs: 420_000 });
  });

  /** The same record every ten seconds, with another time. */
  async function repeats(from: number, times: number, fields: Record<string, unknown> = {}): Promise<void> {
    for (let seq = from; seq < from + times; seq += 1) {
      now += 10_000;
      await ingest(target, [status(seq, { occurredAt: now, ...fields })]);
    }
  }
  const positionOf = async () => Number((await select('SELECT position FROM counter'))[0]?.position);

  it('that repeats the previous one changes only when the agent was last seen', async () => {
    await ingest(target, [status(1, { occurredAt: now })]);
    const before = await target.dump();
    await repeats(2, 5);
    const after = await target.dump();
    expect(await agent()).toMatchObject({ lastSeenAt: now });
    expect(await producer()).toMatchObject({ lastSeq: 6, accepted: 6 });
    const rest = ({ agents, producers, ...tables }: Record<string, unknown[]>) => ({
      ...tables,
      agents: agents?.map((row) => ({ ...(row as object), last_seen_at: 0 })),
      producers: producers?.length,
    });
    expect(rest(after)).toEqual(rest(before));
  });

  it('that repeats the previous one is published once a minute', async () => {
    await ingest(target, [status(1, { occurredAt: now })]);
    const before = await positionOf();
    await repeats(2, 30);
    expect(await positionOf()).toBe(before + 5);
    expect(await agent()).toMatchObject({ statusAt: now, lastSeenAt: now, updatedPosition: String(before + 5) });
  });

  it('with a change is published at once', async () => {
    await ingest(target, [status(1, { occurredAt: now })]);
    await repeats(2, 2);
    const before = await positionOf();
    await ingest(target, [status(4, { status: { kind: 'claude', openTurnId: 'r' } })]);
    expect(await agent()).toMatchObject({ status: { kind: 'claude', openTurnId: 'r' } });
    expect(await positionOf()).toBe(before + 2);
  });

  it('that repeats the previous one in another session creates that session', async () => {
    await ingest(target, [status(1), status(2, { sessionId: 's2' })]);
    expect(await session('s2')).toMatchObject({ agentId: 'a1' });
  });
});

describe('a session', () => {
  it('belongs to the first agent that writes to it, within and across requests', async () => {
    const { rejected } = await ingest(target, [marker(1), marker(2, { agentId: 'a2' }), marker(3)]);
    expect(rejected).toMatchObject([{ seq: 2, code: 'session_of_another_agent' }]);
    const later = await ingest(target, [status(1, { agentId: 'a2' })], 1, 'p2');
    expect(later.rejected).toMatchObject([{ seq: 1, code: 'session_of_another_agent' }]);
    expect((await events('s1')).map((event) => event.value)).toEqual([1, 3]);
    expect(await session()).toMatchObject({ agentId: 'a1', quarantinedCount: 0 });
    expect(await agent('a2')).toMatchObject({ quarantinedCount: 2, sessionCount: 0 });
    const lines = (await select('SELECT * FROM quarantine ORDER BY position')).map((row) => row.agent_id);
    expect(lines).toEqual(['a2', 'a2']);
  });

  it('is not created by a rejected record, but its agent is', async () => {
    await ingest(target, [marker(1, { event: {} })]);
    expect(await session()).toBeUndefined();
    expect(await agent()).toMatchObject({ quarantinedCount: 1 });
    expect((await select('SELECT session_id FROM quarantine'))[0]?.session_id).toBe('s1');
  });

  it('is published once in five seconds while only its text grows', async () => {
    await ingest(target, [record(1, { event: { type: 'RUN_STARTED', runId: 'r' } }), delta(2)]);
    const first = (await session())?.updatedPosition;
    now += 4_000;
    await ingest(target, [delta(3)]);
    expect(await session()).toMatchObject({ updatedPosition: first, lastText: '2 3 ', lastEventAt: now });
    now += 1_000;
    const { position } = await ingest(target, [delta(4)]);
    expect(await session()).toMatchObject({ updatedPosition: String(Number(position) - 1), lastText: '2 3 4 ' });
    const published = (await session())?.updatedPosition;
    await ingest(target, [delta(5), record(6, { event: { type: 'RUN_FINISHED', runId: 'r' } })]);
    expect((await session())?.updatedPosition).not.toBe(published);
    expect(await session()).toMatchObject({ state: 'idle' });
  });
});

describe('an agent', () => {
  it('is published once in five seconds while it is only seen', async () => {
    await ingest(target, [marker(1)]);
    const first = await agent();
    now += 4_999;
    await ingest(target, [marker(2)]);
    expect(await agent()).toEqual(first);
    now += 1;
    await ingest(target, [marker(3)]);
    expect(await agent()).toMatchObject({ firstSeenAt: first?.firstSeenAt, lastSeenAt: now });
    expect((await agent())?.updatedPosition).not.toBe(first?.updatedPosition);
  });
});

describe('a record without an agent', () => {
  it('counts for the agent of its producer and changes nothing else there', async () => {
    await ingest(target, [status(1)]);
    const before = await agent();
    await ingest(target, [{ seq: 2, kind: 'event' }]);
    expect(await agent()).toMatchObject({ ...before, quarantinedCount: 1, updatedPosition: expect.any(String) });
    expect((await select('SELECT agent_id FROM quarantine'))[0]?.agent_id).toBe('a1');
  });

  it('is stored even if its producer is unknown too', async () => {
    expect(await ingest(target, [{ seq: 1 }])).toMatchObject({ ackedSeq: 1, rejected: [{ seq: 1 }] });
    expect((await select('SELECT agent_id FROM quarantine'))[0]?.agent_id).toBeNull();
    expect(await select('SELECT * FROM agents')).toEqual([]);
  });
});

describe('a loss', () => {
  const lost = (seq: number, fields: Record<string, unknown> = {}) =>
    record(seq, { kind: 'lost', lost: { count: 3, reason: 'outbox-full' }, ...fields });
  const said = { type: 'CUSTOM', name: 'interlude:lost', value: { count: 3, reason: 'outbox-full' } };

  it('is stored in its session in sequence', async () => {
    await ingest(target, [marker(1), lost(2), marker(3)]);
    expect((await events('s1'))[1]).toEqual(said);
    expect(await session()).toMatchObject({ lostCount: 3 });
    expect(await agent()).toMatchObject({ lostCount: 3 });
    expect(await producer()).toMatchObject({ lost: 3 });
  });

  it('without a session is stored in every session its outbox has written to, and in no other', async () => {
    await ingest(target, [marker(1), marker(2, { sessionId: 's2' })]);
    await ingest(target, [marker(1, { sessionId: 's3' })], 1, 'another');
    await ingest(target, [marker(3, { sessionId: 's4' }), lost(4, { sessionId: undefined })]);
    for (const id of ['s1', 's2', 's4']) expect((await events(id)).at(-1)).toEqual(said);
    expect(await events('s3')).not.toContainEqual(said);
    expect(await agent()).toMatchObject({ lostCount: 3 });
  });

  it('repeated in one request without a session is stored once with the total', async () => {
    const everywhere = (seq: number) => lost(seq, { sessionId: undefined });
    await ingest(target, [marker(1), everywhere(2), everywhere(3), everywhere(4), marker(5)]);
    expect((await events('s1')).slice(1, -1)).toEqual([{ ...said, value: { ...said.value, count: 9 } }]);
    expect([await session(), await agent()]).toMatchObject([{ lostCount: 9 }, { lostCount: 9 }]);
  });

  it('of an outbox without earlier records is stored in every session of its agent that is not done', async () => {
    await ingest(target, [marker(1), marker(2, { sessionId: 's2' })]);
    const done = { type: 'CUSTOM', name: 'session:ended', value: { exitCode: 0 } };
    await ingest(target, [record(3, { sessionId: 's2', event: done })]);
    await ingest(target, [lost(1, { sessionId: undefined }), marker(2, { sessionId: 's3' })], 1, 'in-its-place');
    expect(await session()).toMatchObject({ lostCount: 3 });
    expect(await session('s2')).toMatchObject({ lostCount: 0 });
    expect(await agent()).toMatchObject({ lostCount: 3 });
  });

  it('in an unknown session creates the session', async () => {
    await ingest(target, [lost(1)]);
    expect(await session()).toMatchObject({ agentId: 'a1', lostCount: 3 });
  });

  it('above the largest integer is still counted', async () => {
    const most = { lost: { count: Number.MAX_SAFE_INTEGER, reason: 'x' } };
    await ingest(target, [lost(1, most), lost(2, most)]);
    expect(await producer()).toMatchObject({ lost: Number.MAX_SAFE_INTEGER });
    expect(await ingest(target, [marker(3)])).toMatchObject({ accepted: 1 });
  });
});

describe('concurrent requests', () => {
  it('are committed in one transaction, and each gets its own answer', async () => {
    const { onCommit, writes } = target.database;
    const commits: string[] = [];
    onCommit((position) => commits.push(position));
    let release: (() => void) | undefined;
    const before = writes.run(() => new Promise<void>((resolve) => (release = resolve)));
    await expect.poll(() => release).toBeDefined();
    const asked = Array.from({ length: 40 }, (_, index) => ingest(target, [marker(1)], 1, `p${index}`));
    await expect.poll(() => writes.load.jobs).toBe(1 + asked.length);
    // A transaction accepts jobs for 50 ms, which a busy machine may exceed.
    vi.useFakeTimers({ toFake: ['performance'] });
    release?.();
    await before;
    const positions = (await Promise.all(asked)).map(({ position }) => position);
    expect(new Set(positions).size).toBe(asked.length);
    expect(commits).toHaveLength(2);
    expect((await select('SELECT count(*) AS n FROM events'))[0]?.n).toBe(40);
  });
});

describe("a producer's row", () => {
  it('counts accepted, duplicate, rejected and gap records', async () => {
    await ingest(target, [marker(1), marker(2, { kind: '?' })]);
    await ingest(target, [marker(1), marker(2)]);
    for (const seq of [9, 10]) {
      const response = await sendEvents(target, { producer: { id: 'p1', epoch: 1 }, records: [marker(seq)] });
      expect((await errorOf(response)).code).toBe('sequence_gap');
    }
    expect(await producer()).toMatchObject({ gaps: 0 });
    await ingest(target, [marker(3)]);
    expect(await producer()).toMatchObject({
      accepted: 2,
      duplicates: 2,
      rejected: 1,
      gaps: 2,
      lastSeq: 3,
      agentId: 'a1',
    });
    await ingest(target, [marker(4)]);
    expect(await producer()).toMatchObject({ gaps: 2 });
  });
});

describe('a log line', () => {
  it('is stored when it holds invalid UTF-8 or a NUL', async () => {
    const message = 'before\u0000after \ud800 end';
    await ingest(target, [record(1, { kind: 'log', log: { level: 'warn', component: 'x\u0000y', message } })]);
    const [line] = await select('SELECT * FROM log_lines');
    expect(line).toMatchObject({ component: 'x\uFFFDy', message: 'before\uFFFDafter \uFFFD end', level: 'warn' });
  });
});
