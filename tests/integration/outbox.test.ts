import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ProcessLockedError } from '@interlude/runner/host/process-lock';
import { candidateOf } from '@interlude/runner/outbox/append-plan';
import type { OutboxNotice } from '@interlude/runner/outbox/delivery';
import { systemClock } from '@interlude/runner/outbox/delivery';
import { poisonedIn } from '@interlude/runner/outbox/operations';
import { Outbox, type OutboxOptions, type OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { OutboxStore, type QueuedRow } from '@interlude/runner/outbox/store';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { InstantClock, ManualClock } from '../support/clocks';
import { FaultServer, refusal } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';
import { WAIT_MS } from '../support/timeouts';

let server: FaultServer;
let file: string;

beforeEach(async () => {
  server = await FaultServer.start();
  file = join(await tempDir(), 'outbox.db');
});
afterEach(() => server.close());

const log = (message: string): OutgoingRecord => ({
  kind: 'log',
  agentId: 'agent-1',
  occurredAt: 1_795_000_000_000,
  log: { level: 'info', component: 'test', message },
});

const message = (sessionId: string, delta: string): OutgoingRecord => ({
  kind: 'event',
  agentId: 'agent-1',
  sessionId,
  occurredAt: 1_795_000_000_000,
  event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta },
});

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => String(from + index));

async function open(options: Partial<OutboxOptions> = {}): Promise<Outbox> {
  const outbox = await Outbox.open(file, {
    producerId: 'producer-1',
    agentId: 'agent-1',
    endpoint: async () => ({ url: server.url, token: 'a-token-of-the-test' }),
    clock: new InstantClock(),
    ...options,
  });
  onTestFinished(async () => void (await outbox.stop()));
  return outbox;
}

async function until(outbox: Outbox, condition: () => boolean): Promise<void> {
  await expect.poll(() => condition() || JSON.stringify(outbox.status), { interval: 5 }).toBe(true);
}

describe('sending', () => {
  test('delivers records once, in order, numbered from 1 without gaps', async () => {
    const outbox = await open();
    await Promise.all(numbered(1, 1_200).map((text) => outbox.enqueue(log(text))));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 1_200));
    expect(server.ledger.records.map((record) => record.seq)).toEqual(numbered(1, 1_200).map(Number));
  });

  test('sends at most 500 records in a request', async () => {
    await server.close();
    const outbox = await open();
    await outbox.enqueue(numbered(1, 1_200).map(log));
    await server.listen();
    await outbox.idle();
    expect(server.requests.map((request) => request.seqs.length)).toEqual([500, 500, 200]);
  });

  test('sends at most 1 MiB in a request, but always one record', async () => {
    await server.close();
    const outbox = await open();
    const large = 'x'.repeat(400_000);
    const larger = 'y'.repeat(2_000_000);
    await outbox.enqueue([large, large, large, larger, 'small'].map(log));
    await server.listen();
    await outbox.idle();
    expect(server.requests.map((request) => request.seqs)).toEqual([[1, 2], [3], [4], [5]]);
  });

  test('compresses a large request, and not a small one', async () => {
    const outbox = await open();
    await outbox.enqueue(log('short'));
    await outbox.idle();
    await outbox.enqueue(log('long '.repeat(1_000)));
    await outbox.idle();
    expect(server.requests.map((request) => request.encoding)).toEqual([undefined, 'gzip']);
    expect(server.requests[1]?.bytes).toBeLessThan(1_000);
  });

  test('sends at once when it is idle', async () => {
    const outbox = await open({ clock: new ManualClock() });
    await outbox.enqueue(log('now'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['now']);
  });

  test('ignores a seq in a handed-over record', async () => {
    const outbox = await open();
    await outbox.enqueue({ ...log('first'), seq: 99 });
    await outbox.idle();
    expect(server.ledger.records.map((record) => record.seq)).toEqual([1]);
  });

  test('stores a cursor with its records', async () => {
    const outbox = await open();
    expect(await outbox.cursor('line')).toBeNull();
    await outbox.enqueue([log('a'), log('b')], { name: 'line', value: '2' });
    expect(await outbox.cursor('line')).toBe('2');
    await outbox.stop();
    expect(await (await open()).cursor('line')).toBe('2');
  });

  test('accepts nothing after stop', async () => {
    const outbox = await open();
    await outbox.stop();
    expect(() => outbox.enqueue(log('too late'))).toThrow('stopped');
  });

  test('sends what it can on stop, and keeps the rest for the next outbox', async () => {
    const first = await open({ clock: systemClock });
    for (const text of numbered(1, 50)) first.enqueue(log(text));
    expect(await first.stop({ flushMs: WAIT_MS })).toEqual({ waiting: 0 });
    expect(server.ledger.messages).toEqual(numbered(1, 50));

    await server.close();
    const second = await open({ clock: new ManualClock() });
    second.enqueue(log('51'));
    expect(await second.stop()).toEqual({ waiting: 1 });
    await server.listen();
    await (await open()).idle();
    expect(server.ledger.messages).toEqual(numbered(1, 51));
  });

  test('opens a file in one outbox only', async () => {
    const first = await open();
    await expect(open()).rejects.toThrow(ProcessLockedError);
    await expect(open()).rejects.toThrow(`process ${process.pid}`);
    await first.stop();
    await (await open()).stop();
  });
});

describe('a failing server', () => {
  test('loses nothing in an outage of a hundred attempts', async () => {
    const clock = new InstantClock();
    server.behaviour = () => (server.requests.length < 100 ? { kind: 'answer', status: 503 } : { kind: 'none' });
    const outbox = await open({ clock });
    await outbox.enqueue(numbered(1, 3).map(log));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 3));
    expect(clock.waits).toHaveLength(99);
  });

  test('is retried after one second, doubling to ten, with jitter over the upper half', async () => {
    const clock = new InstantClock();
    server.behaviour = () => (server.requests.length <= 9 ? { kind: 'reset' } : { kind: 'none' });
    const outbox = await open({ clock });
    await outbox.enqueue(log('patience'));
    await outbox.idle();
    expect(clock.waits).toEqual([750, 1_500, 3_000, 6_000, 7_500, 7_500, 7_500, 7_500, 7_500]);
  });

  test.each([
    ['a reset connection', { kind: 'reset' }],
    ['a reset after the server stored the records', { kind: 'taken-then-reset' }],
    ['a truncated response', { kind: 'taken-then-half-an-answer' }],
    ['no response', { kind: 'taken-then-silence' }],
    ['a 500', { kind: 'answer', status: 500 }],
    ['a 404 of a proxy', { kind: 'answer', status: 404, body: 'nothing here' }],
    ['a 400 of a proxy', { kind: 'answer', status: 400, body: 'the plain request was sent to a TLS port' }],
    ['a page instead of a response', { kind: 'answer', status: 200, body: 'Welcome!' }],
  ] as const)('causes no loss or duplicate: %s', async (_name, fault) => {
    server.script(fault, fault);
    const outbox = await open({ requestTimeoutMs: 150 });
    for (const text of numbered(1, 20)) await outbox.enqueue(log(text));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 20));
    expect(await poisonedIn(file)).toEqual([]);
  });

  test('has its Retry-After honoured', async () => {
    const clock = new InstantClock();
    server.script({ kind: 'answer', status: 429, headers: { 'retry-after': '17' } });
    const outbox = await open({ clock });
    await outbox.enqueue(log('later'));
    await outbox.idle();
    expect(clock.waits).toEqual([17_000]);
  });

  test('is retried immediately on a kick', async () => {
    const clock = new ManualClock();
    server.script({ kind: 'answer', status: 503, headers: { 'retry-after': '3600' } });
    const outbox = await open({ clock });
    await outbox.enqueue(log('kicked'));
    await until(outbox, () => outbox.status.state === 'waiting');
    expect(clock.armed.map((timer) => timer.ms)).toEqual([3_600_000]);
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['kicked']);
    expect(clock.armed).toEqual([]);
  });

  test('stops sending, not collecting, on a refused token, and continues with a renewed one', async () => {
    let token = 'an-old-token-of-the-test';
    const clock = new ManualClock();
    server.behaviour = (request) =>
      request.authorization === 'Bearer a-new-token-of-the-test'
        ? { kind: 'none' }
        : { kind: 'answer', ...refusal(401, 'unauthenticated', {}) };
    const outbox = await open({ clock, endpoint: async () => ({ url: server.url, token }) });
    await outbox.enqueue(log('1'));
    await until(outbox, () => outbox.status.state === 'waiting');
    await outbox.enqueue(log('2'));
    expect(outbox.status).toMatchObject({ waiting: 2, trouble: { kind: 'unauthorized', tries: 1 } });
    expect(clock.armed.map((timer) => timer.ms)).toEqual([22_500]);
    token = 'a-new-token-of-the-test';
    clock.fire();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['1', '2']);
    expect(outbox.status.trouble).toBeNull();
  });

  test('stops and reports an outbox whose producer was taken over', async () => {
    await server.ledger.take({
      producer: { id: 'producer-1', epoch: 9_000_000_000_000 },
      records: [{ seq: 1, ...log('of the newer outbox') } as never],
    });
    const outbox = await open();
    await outbox.enqueue(log('of the older one'));
    const status = await outbox.idle();
    expect(status).toMatchObject({ state: 'fenced', waiting: 1, trouble: { kind: 'fenced', retryAt: null } });
    await outbox.enqueue(log('still collected'));
    outbox.kick();
    expect(outbox.status).toMatchObject({ state: 'fenced', waiting: 2 });
    expect(server.requests).toHaveLength(1);
  });

  test('learns what is missing when it lost its database, and gets the rest', async () => {
    const notices: OutboxNotice[] = [];
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue([message('s1', '1'), message('s1', '2'), message('s1', '3')]);
    await outbox.idle();
    server.ledger.forget();
    const { epoch } = outbox.status.producer;
    await outbox.enqueue([message('s1', '4'), message('s1', '5')]);
    await outbox.idle();
    expect(server.ledger.records.slice(3)).toMatchObject([
      { seq: 1, kind: 'lost', agentId: 'agent-1', sessionId: 's1', lost: { count: 3, reason: 'lost-by-server' } },
      { seq: 2, event: { delta: '4' } },
      { seq: 3, event: { delta: '5' } },
    ]);
    expect(outbox.status.producer.epoch).toBeGreaterThan(epoch);
    expect(notices).toMatchObject([{ kind: 'lost-by-server', count: 3 }]);
  });

  test('is not sent records it already has, over and over', async () => {
    const outbox = await open();
    server.script({ kind: 'answer', ...refusal(409, 'sequence_gap', { expectedSeq: 3 }) });
    server.behaviour = () => ({ kind: 'answer', status: 200, body: { ackedSeq: 4 } });
    await outbox.enqueue(numbered(1, 4).map(log));
    await outbox.idle();
    expect(server.requests.map((request) => request.seqs)).toEqual([
      [1, 2, 3, 4],
      [3, 4],
    ]);
  });

  test.each([1, 4, 6])('loses none of %i new records of a restored old file when it is four ahead', async (count) => {
    const before = await open();
    await before.enqueue(numbered(1, 3).map(log));
    await before.idle();
    await before.stop();
    const client = createClient({ url: `file:${file}` });
    await client.execute(`VACUUM INTO '${file}.backup'`);
    client.close();
    const meanwhile = await open();
    await meanwhile.enqueue(numbered(4, 7).map(log));
    await meanwhile.idle();
    await meanwhile.stop();
    for (const name of [file, `${file}-wal`, `${file}-shm`]) await rm(name, { force: true });
    await copyFile(`${file}.backup`, file);
    await server.close();
    const notices: OutboxNotice[] = [];
    const restored = await open({ onNotice: (notice) => notices.push(notice) });
    const fresh = numbered(101, 100 + count);
    await restored.enqueue(fresh.map(log));
    await server.listen();
    restored.kick();
    await restored.idle();
    expect(server.ledger.messages).toEqual([...numbered(1, 7), ...fresh]);
    expect(notices).toMatchObject([{ level: 'error', kind: 'rewound' }]);
  });

  test('is probed once by a reopened file, without storing or counting anything', async () => {
    const before = await open();
    await before.enqueue(numbered(1, 3).map(log));
    await before.idle();
    await before.stop();
    const after = await open();
    await after.enqueue(log('4'));
    await after.idle();
    await after.enqueue(log('5'));
    await after.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 5));
    const probes = server.requests.filter(({ seqs }) => seqs[0] === Number.MAX_SAFE_INTEGER);
    expect(probes).toHaveLength(1);
  });

  test('does not mistake new records of a restored file for duplicates', async () => {
    const outbox = await open();
    server.script({ kind: 'answer', status: 200, body: { ackedSeq: 700, duplicates: 1, rejected: [] } });
    await outbox.enqueue(log('not there yet'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['not there yet']);
  });
});

describe('rejected records', () => {
  test('are isolated, set aside and declared, while the others arrive', async () => {
    const notices: OutboxNotice[] = [];
    await server.close();
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue(numbered(1, 100).map(log));
    server.behaviour = (request) => {
      const poisoned = request.seqs.includes(37) && !server.ledger.records.some((record) => record.seq === 37);
      const declared = request.seqs.length === 1 && notices.length > 0;
      return poisoned && !declared ? { kind: 'answer', ...refusal(400, 'malformed', {}) } : { kind: 'none' };
    };
    await server.listen();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 100).filter((text) => text !== '37'));
    expect(server.ledger.records[36]).toMatchObject({ kind: 'lost', lost: { count: 1, reason: 'refused-by-server' } });
    expect(notices).toMatchObject([{ level: 'fatal', kind: 'poisoned', seq: 37 }]);
    expect(notices[0]?.message).toMatch(
      /^record rejected permanently and set aside: seq 37, kind log, attempts \d+, reason: refused: malformed; resend or discard it with "interlude outbox"$/,
    );
    const attempts = Number(/attempts (\d+)/.exec(notices[0]?.message ?? '')?.[1]);
    const refused = server.requests.filter(({ seqs }) => seqs.includes(37)).length;
    // Except for the request with the declaration in its place.
    expect(attempts).toBe(refused - 1);
    const [kept] = await poisonedIn(file);
    expect(JSON.parse(kept?.body ?? '')).toEqual(log('37'));
  });

  test('are one at most when a server refuses everything', async () => {
    const clock = new ManualClock();
    server.behaviour = () => ({ kind: 'answer', ...refusal(413, 'too_large', {}) });
    const outbox = await open({ clock });
    await outbox.enqueue(numbered(1, 50).map(log));
    await until(outbox, () => outbox.status.state === 'waiting');
    expect(outbox.status).toMatchObject({ waiting: 50, trouble: { kind: 'refused' } });
    expect(await poisonedIn(file)).toHaveLength(1);
  });

  test('are kept and declared at their place when no request can hold them', async () => {
    const outbox = await open();
    await outbox.enqueue([message('s1', 'before'), message('s1', 'x'.repeat(9_000_000)), message('s1', 'after')]);
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([
      { event: { delta: 'before' } },
      { kind: 'lost', sessionId: 's1', lost: { count: 1, reason: 'record-too-large' } },
      { event: { delta: 'after' } },
    ]);
    expect((await poisonedIn(file))[0]?.body).toHaveLength(JSON.stringify(message('s1', 'x'.repeat(9_000_000))).length);
  });

  test('are acknowledged and logged when the server quarantined them', async () => {
    const notices: OutboxNotice[] = [];
    const rejected = [{ seq: 1, code: 'unknown_kind', message: 'what is that?' }];
    server.script({ kind: 'answer', status: 200, body: { ackedSeq: 1, rejected } });
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue(log('odd'));
    await outbox.idle();
    expect(notices).toMatchObject([{ kind: 'quarantined', rejected }]);
  });
});

const LISTS = {
  process: { state: 'running', pid: 1, exitCode: null },
  ...{ openTurnId: null, state: 'still', tasks: [], requests: [] },
};

describe('queued status records', () => {
  const status = (sessionId: string, at: number): OutgoingRecord => ({
    kind: 'status',
    agentId: 'agent-1',
    sessionId,
    occurredAt: at,
    status: { at },
  });
  const reports = () =>
    server.ledger.records.map((record) =>
      record.kind === 'status' ? `${record.sessionId} ${record.occurredAt}` : record.kind,
    );

  test('queued statuses are the newest of each session, with the newest of all last', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock() });
    for (const at of [1, 2, 3]) {
      await outbox.enqueue([status('s1', at * 10), log(`${at}`), status('s2', at * 10 + 1)]);
    }
    await outbox.enqueue(status('s1', 40));
    await until(outbox, () => outbox.status.state === 'waiting');
    expect(outbox.status.waiting).toBe(5);
    await server.listen();
    outbox.kick();
    await outbox.idle();
    expect(reports()).toEqual(['s2 31', 'log', 's1 40', 'log', 'log']);
  });

  test('are replaced by those of the next process', async () => {
    await server.close();
    const first = await open({ clock: new ManualClock() });
    await first.enqueue([status('s1', 1), log('a'), status('s2', 2)]);
    await first.stop();
    const second = await open({ clock: new ManualClock(), sendAtOpen: false });
    await second.enqueue(status('s1', 3));
    await server.listen();
    second.kick();
    await second.idle();
    expect(reports()).toEqual(['s2 2', 'log', 's1 3']);
  });

  test('queued statuses are replaced during a request that carries them only if it fails', async () => {
    server.script({ kind: 'held' });
    const outbox = await open();
    await outbox.enqueue(status('s1', 1));
    await server.until(() => server.requests.length === 1);
    for (const at of [2, 3, 4]) await outbox.enqueue(status('s1', at));
    expect(outbox.status.waiting).toBe(2);
    server.release();
    await outbox.idle();
    expect(reports()).toEqual(['s1 1', 's1 4']);

    server.behaviour = () => ({ kind: 'answer', status: 503 });
    await outbox.enqueue(status('s1', 5));
    await outbox.enqueue([log('x'), status('s1', 6)]);
    await until(outbox, () => (outbox.status.trouble?.tries ?? 0) > 2);
    await outbox.enqueue(status('s1', 7));
    server.behaviour = () => ({ kind: 'none' });
    await outbox.idle();
    expect(reports().slice(2)).toEqual(['s1 7', 'log']);
  });

  test('queued statuses replace those of a request whose response was lost, and are sent again when the server has it', async () => {
    server.script({ kind: 'taken-then-reset' }, { kind: 'answer', status: 503 });
    const clock = new ManualClock();
    const outbox = await open({ clock });
    await outbox.enqueue(status('s1', 1));
    await until(outbox, () => outbox.status.state === 'waiting');
    await outbox.enqueue(status('s1', 2));
    outbox.kick();
    await until(outbox, () => outbox.status.trouble?.tries === 2);
    outbox.kick();
    await outbox.idle();
    expect(reports()).toEqual(['s1 1', 's1 2']);
    expect(server.ledger.records.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('are not replaced by an older one that was held back for a finished request', async () => {
    const birth = { producerId: 'producer-1', epoch: 1 };
    const store = await OutboxStore.open(file, birth, { maxRows: 100, maxBytes: 1_000_000 });
    onTestFinished(() => store.close());
    const reports = (at: number) => {
      const body = JSON.stringify(status('s1', at));
      const about = { kind: 'status', agentId: 'agent-1', sessionId: 's1', occurredAt: at };
      return store.append([{ candidates: [{ ...about, body, bytes: body.length }] }], at);
    };
    await reports(1);
    await store.head(500, 1_000_000);
    await reports(2);
    await Promise.all([store.acknowledge(1, false), reports(3), store.completed(4)]);
    expect((await store.head(500, 1_000_000)).map(({ seq, body }) => [seq, JSON.parse(body).occurredAt])).toEqual([
      [2, 3],
    ]);
  });

  test.each([
    ['omit open items after later events of their session', 's1', false],
    ['keep open items after later events of another session', 's2', true],
  ])('held-back statuses %s', async (_what, sessionId, isKept) => {
    server.script({ kind: 'held' });
    const outbox = await open();
    const report = (at: number): OutgoingRecord => {
      const lists = LISTS;
      return { kind: 'status', agentId: 'agent-1', sessionId: 's1', occurredAt: at, status: { at, ...lists } };
    };
    await outbox.enqueue(report(1));
    await server.until(() => server.requests.length === 1);
    await outbox.enqueue(report(2));
    const event = { type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q' } };
    await outbox.enqueue({ kind: 'event', agentId: 'agent-1', sessionId, occurredAt: 3, event });
    server.release();
    await outbox.idle();
    const [, , last] = server.ledger.records as { occurredAt: number; status: Record<string, unknown> }[];
    expect(last?.occurredAt).toBe(2);
    expect(last?.status).toEqual({
      at: 2,
      ...(isKept && LISTS),
    });
  });

  test('are sent again by the next process when the server has a replaced one', async () => {
    server.script({ kind: 'taken-then-reset' });
    const first = await open({ clock: new ManualClock() });
    await first.enqueue(status('s1', 1));
    await until(first, () => first.status.state === 'waiting');
    await first.enqueue(status('s1', 2));
    await first.stop();
    const second = await open();
    await second.idle();
    expect(reports()).toEqual(['s1 1', 's1 2']);
  });

  test('exclude reports of the outbox’s own delay', async () => {
    await server.close();
    const clock = new ManualClock();
    const outbox = await open({ clock });
    await outbox.enqueue([status('s1', 5), log('a'), status('s1', 6)]);
    clock.time += 7;
    expect((await outbox.facts()).oldestAgeMs).toBe(7);
  });

  test('keep dense numbers through a new epoch', async () => {
    const outbox = await open();
    await outbox.enqueue([log('a'), status('s1', 1)]);
    await outbox.idle();
    server.ledger.forget();
    await server.close();
    await outbox.enqueue([log('b'), status('s1', 2), log('c')]);
    await until(outbox, () => (outbox.status.trouble?.tries ?? 0) > 0);
    await outbox.enqueue(status('s1', 3));
    await server.listen();
    await outbox.idle();
    await outbox.enqueue(status('s1', 4));
    await outbox.idle();
    expect(reports()).toEqual(['log', 's1 1', 'lost', 'log', 's1 3', 'log', 's1 4']);
  });
});

describe('a full outbox', () => {
  test('drops log lines first, then the newest of all kinds, and declares each loss at its place', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), bound: { maxRows: 10, maxBytes: 1_000_000 } });
    for (const text of numbered(1, 12)) await outbox.enqueue(log(text));
    await outbox.enqueue(message('s1', 'still fits'));
    for (let index = 0; index < 5; index += 1) await outbox.enqueue(message(`s${index % 2}`, 'too late'));
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(message('s1', 'room again'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 9));
    expect(server.ledger.records.slice(9)).toMatchObject([
      { kind: 'lost', lost: { count: 3, reason: 'outbox-full' } },
      { kind: 'lost', sessionId: 's1', lost: { count: 3 } },
      { kind: 'lost', sessionId: 's0', lost: { count: 3 } },
      { event: { delta: 'room again' } },
    ]);
  });

  test('has room for logged failures, and not for other signals', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), bound: { maxRows: 10, maxBytes: 1_000_000 } });
    await outbox.enqueue(numbered(1, 9).map((text) => message('s1', text)));
    const logLine = (message: string, insight: object): OutgoingRecord => ({
      kind: 'log',
      agentId: 'agent-1',
      occurredAt: 1_795_000_000_000,
      log: { level: 'info', component: 'test', message, insight },
    });
    await outbox.enqueue(logLine('failed', { signal: 'disk', outcome: 'failed', source: 'disk' }));
    await outbox.enqueue(logLine('as it is', { signal: 'context_ratio', value: 0.4, source: 'context' }));
    await server.listen();
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['failed']);
    expect(server.ledger.lost).toBe(1);
  });

  test('does not change a loss that was declared to the server', async () => {
    const clock = new ManualClock();
    const outbox = await open({ clock, bound: { maxRows: 2, maxBytes: 1_000_000 } });
    server.script({ kind: 'taken-then-reset' });
    await server.close();
    await outbox.enqueue([message('s1', '1'), message('s1', '2'), message('s1', 'dropped')]);
    await until(outbox, () => outbox.status.state === 'waiting');
    await server.listen();
    outbox.kick();
    await until(outbox, () => outbox.status.trouble?.tries === 2);
    await outbox.enqueue(message('s1', 'dropped as well'));
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.lost).toBe(2);
  });

  test('counts no further drops in a loss that the server has already received', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), maxBatchRows: 1, bound: { maxRows: 9, maxBytes: 1_000 } });
    const tooLarge = 'x'.repeat(2_000);
    await outbox.enqueue([message('s1', 'fits'), message('s1', tooLarge)]);
    await until(outbox, () => outbox.status.state === 'waiting');
    const records = [1, 2].map((seq) => ({ seq, ...message('s1', 'from a newer copy of the file') }) as never);
    await server.ledger.take({ producer: outbox.status.producer, records });
    server.script({ kind: 'answer', ...refusal(409, 'sequence_gap', { expectedSeq: 3 }) });
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(message('s1', tooLarge));
    await outbox.idle();
    expect(server.ledger.records.slice(2)).toMatchObject([
      { seq: 3, kind: 'lost', sessionId: 's1', lost: { count: 1, reason: 'outbox-full' } },
    ]);
  });
});

test('the size of a record is that of its JSON in bytes after any change', async () => {
  const now = 1_795_000_000_000;
  const client = createClient({ url: `file:${file}` });
  onTestFinished(() => client.close());
  const store = await OutboxStore.open(file, { producerId: 'p', epoch: 1 }, { maxRows: 3, maxBytes: 1_000_000 });
  onTestFinished(() => store.close());
  const sizes = async () => {
    const { rows } = await client.execute('SELECT bytes, length(CAST(body AS BLOB)) AS real FROM queue ORDER BY seq');
    expect(rows.map(({ bytes }) => bytes)).toEqual(rows.map(({ real }) => real));
    return rows.length;
  };
  const of = (delta: string) => candidateOf(JSON.stringify({ ...message('сеанс', delta), agentId: 'агент' }));
  await store.append([{ candidates: ['1', '2', '3', '4', '5'].map(of) }], now);
  expect(await sizes()).toBe(4);
  await store.append([{ candidates: Array.from({ length: 9 }, () => of('dropped')) }], now);
  expect(await sizes()).toBe(4);
  const [first] = await store.head(1, 1_000_000);
  await store.poison(first as QueuedRow, 'malformed', now);
  expect(await sizes()).toBe(4);
  await store.renumber(2, { agentId: 'агент', occurredAt: now, count: 1, reason: 'lost-by-server' });
  expect(await sizes()).toBe(5);
});

describe('a damaged file', () => {
  test('is set aside at the start, with a new epoch and a declared loss', async () => {
    await writeFile(file, 'this is no database at all, whatever its name says '.repeat(200));
    const notices: OutboxNotice[] = [];
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue(log('anew'));
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([
      { seq: 1, kind: 'lost', agentId: 'agent-1', lost: { count: 1, reason: 'outbox-corrupt' } },
      { seq: 2, log: { message: 'anew' } },
    ]);
    expect(notices).toMatchObject([{ kind: 'corrupt' }]);
    expect(readdirSync(join(file, '..')).some((name) => name.includes('.corrupt-'))).toBe(true);
  });

  test('is detected while open, and a new file continues', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock() });
    // More than SQLite caches, so it must read the damaged pages.
    await outbox.enqueue(numbered(1, 40).map((text) => message('s1', text.repeat(300_000))));
    await until(outbox, () => outbox.status.state === 'waiting');
    for (const name of [file, `${file}-wal`]) {
      const size = statSync(name).size;
      writeFileSync(name, Buffer.alloc(Math.max(size - 4_096, 0), 0xff), { flag: 'r+' });
    }
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(message('s1', 'goes on'));
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([
      { seq: 1, kind: 'lost', lost: { reason: 'outbox-corrupt' } },
      { seq: 2, event: { delta: 'goes on' } },
    ]);
  });

  test('excludes an empty file', async () => {
    await writeFile(file, '');
    const outbox = await open();
    await outbox.enqueue(log('fine'));
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([{ seq: 1, kind: 'log' }]);
    expect(existsSync(file)).toBe(true);
  });
});
