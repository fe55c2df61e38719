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

const said = (sessionId: string, delta: string): OutgoingRecord => ({
  kind: 'event',
  agentId: 'agent-1',
  sessionId,
  occurredAt: 1_795_000_000_000,
  event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta },
});

const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => String(from + at));

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

async function reaches(outbox: Outbox, condition: () => boolean): Promise<void> {
  await expect.poll(() => condition() || JSON.stringify(outbox.status), { interval: 5 }).toBe(true);
}

describe('handing over and sending', () => {
  test('what is handed over arrives once, in order, numbered from 1 without a hole', async () => {
    const outbox = await open();
    await Promise.all(numbered(1, 1_200).map((text) => outbox.enqueue(log(text))));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 1_200));
    expect(server.ledger.records.map((record) => record.seq)).toEqual(numbered(1, 1_200).map(Number));
  });

  test('a request carries at most 500 records', async () => {
    await server.close();
    const outbox = await open();
    await outbox.enqueue(numbered(1, 1_200).map(log));
    await server.listen();
    await outbox.idle();
    expect(server.requests.map((request) => request.seqs.length)).toEqual([500, 500, 200]);
  });

  test('a request carries at most 1 MiB, but always one record', async () => {
    await server.close();
    const outbox = await open();
    const large = 'x'.repeat(400_000);
    const larger = 'y'.repeat(2_000_000);
    await outbox.enqueue([large, large, large, larger, 'small'].map(log));
    await server.listen();
    await outbox.idle();
    expect(server.requests.map((request) => request.seqs)).toEqual([[1, 2], [3], [4], [5]]);
  });

  test('a small request goes as it is, a large one compressed', async () => {
    const outbox = await open();
    await outbox.enqueue(log('short'));
    await outbox.idle();
    await outbox.enqueue(log('long '.repeat(1_000)));
    await outbox.idle();
    expect(server.requests.map((request) => request.encoding)).toEqual([undefined, 'gzip']);
    expect(server.requests[1]?.bytes).toBeLessThan(1_000);
  });

  test('an idle outbox sends at once', async () => {
    const outbox = await open({ clock: new ManualClock() });
    await outbox.enqueue(log('now'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['now']);
  });

  test('a seq that came along with a record does not overrule the outbox', async () => {
    const outbox = await open();
    await outbox.enqueue({ ...log('first'), seq: 99 });
    await outbox.idle();
    expect(server.ledger.records.map((record) => record.seq)).toEqual([1]);
  });

  test('a cursor is stored with the records it stands for', async () => {
    const outbox = await open();
    expect(await outbox.cursor('line')).toBeNull();
    await outbox.enqueue([log('a'), log('b')], { name: 'line', value: '2' });
    expect(await outbox.cursor('line')).toBe('2');
    await outbox.stop();
    expect(await (await open()).cursor('line')).toBe('2');
  });

  test('after stop nothing more is taken', async () => {
    const outbox = await open();
    await outbox.stop();
    expect(() => outbox.enqueue(log('too late'))).toThrow('stopped');
  });

  test('stop waits for what can still be sent, and keeps the rest for the next outbox', async () => {
    const first = await open({ clock: systemClock });
    for (const text of numbered(1, 50)) first.enqueue(log(text));
    expect(await first.stop({ flushMs: 5_000 })).toEqual({ waiting: 0 });
    expect(server.ledger.messages).toEqual(numbered(1, 50));

    await server.close();
    const second = await open({ clock: new ManualClock() });
    second.enqueue(log('51'));
    expect(await second.stop()).toEqual({ waiting: 1 });
    await server.listen();
    await (await open()).idle();
    expect(server.ledger.messages).toEqual(numbered(1, 51));
  });

  test('a file is open in one outbox only', async () => {
    const first = await open();
    await expect(open()).rejects.toThrow(ProcessLockedError);
    await expect(open()).rejects.toThrow(`process ${process.pid}`);
    await first.stop();
    await (await open()).stop();
  });
});

describe('a server in trouble', () => {
  test('an outage of a hundred tries uses nothing up', async () => {
    const clock = new InstantClock();
    server.behaviour = () => (server.requests.length < 100 ? { kind: 'answer', status: 503 } : { kind: 'none' });
    const outbox = await open({ clock });
    await outbox.enqueue(numbered(1, 3).map(log));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 3));
    expect(clock.waits).toHaveLength(99);
  });

  test('the wait doubles from one second to ten, spread over its upper half', async () => {
    const clock = new InstantClock();
    server.behaviour = () => (server.requests.length <= 9 ? { kind: 'reset' } : { kind: 'none' });
    const outbox = await open({ clock });
    await outbox.enqueue(log('patience'));
    await outbox.idle();
    expect(clock.waits).toEqual([750, 1_500, 3_000, 6_000, 7_500, 7_500, 7_500, 7_500, 7_500]);
  });

  test.each([
    ['a cut connection', { kind: 'reset' }],
    ['a cut connection after the records were taken', { kind: 'taken-then-reset' }],
    ['half an answer', { kind: 'taken-then-half-an-answer' }],
    ['no answer at all', { kind: 'taken-then-silence' }],
    ['a 500', { kind: 'answer', status: 500 }],
    ['a proxy that knows nothing', { kind: 'answer', status: 404, body: 'nothing here' }],
    ['a proxy that says 400', { kind: 'answer', status: 400, body: 'the plain request was sent to a TLS port' }],
    ['a page instead of an answer', { kind: 'answer', status: 200, body: 'Welcome!' }],
  ] as const)('%s is survived without loss or double', async (_name, fault) => {
    server.script(fault, fault);
    const outbox = await open({ requestTimeoutMs: 150 });
    for (const text of numbered(1, 20)) await outbox.enqueue(log(text));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 20));
    expect(await poisonedIn(file)).toEqual([]);
  });

  test('Retry-After is honoured', async () => {
    const clock = new InstantClock();
    server.script({ kind: 'answer', status: 429, headers: { 'retry-after': '17' } });
    const outbox = await open({ clock });
    await outbox.enqueue(log('later'));
    await outbox.idle();
    expect(clock.waits).toEqual([17_000]);
  });

  test('a kick ends a long wait', async () => {
    const clock = new ManualClock();
    server.script({ kind: 'answer', status: 503, headers: { 'retry-after': '3600' } });
    const outbox = await open({ clock });
    await outbox.enqueue(log('kicked'));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    expect(clock.armed.map((timer) => timer.ms)).toEqual([3_600_000]);
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['kicked']);
    expect(clock.armed).toEqual([]);
  });

  test('a refused token stops the sending, not the collecting, and a renewed one is used', async () => {
    let token = 'an-old-token-of-the-test';
    const clock = new ManualClock();
    server.behaviour = (request) =>
      request.authorization === 'Bearer a-new-token-of-the-test'
        ? { kind: 'none' }
        : { kind: 'answer', ...refusal(401, 'unauthenticated', {}) };
    const outbox = await open({ clock, endpoint: async () => ({ url: server.url, token }) });
    await outbox.enqueue(log('1'));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    await outbox.enqueue(log('2'));
    expect(outbox.status).toMatchObject({ waiting: 2, trouble: { kind: 'unauthorized', tries: 1 } });
    expect(clock.armed.map((timer) => timer.ms)).toEqual([22_500]);
    token = 'a-new-token-of-the-test';
    clock.fire();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['1', '2']);
    expect(outbox.status.trouble).toBeNull();
  });

  test('an outbox whose producer was taken over stops and says so', async () => {
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

  test('a server that lost its database is told what is missing, and gets what waits', async () => {
    const notices: OutboxNotice[] = [];
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue([said('s1', '1'), said('s1', '2'), said('s1', '3')]);
    await outbox.idle();
    server.ledger.forget();
    const { epoch } = outbox.status.producer;
    await outbox.enqueue([said('s1', '4'), said('s1', '5')]);
    await outbox.idle();
    expect(server.ledger.records.slice(3)).toMatchObject([
      { seq: 1, kind: 'lost', agentId: 'agent-1', sessionId: 's1', lost: { count: 3, reason: 'lost-by-server' } },
      { seq: 2, event: { delta: '4' } },
      { seq: 3, event: { delta: '5' } },
    ]);
    expect(outbox.status.producer.epoch).toBeGreaterThan(epoch);
    expect(notices).toMatchObject([{ kind: 'lost-by-server', count: 3 }]);
  });

  test('records the server already has are not sent for ever', async () => {
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

  test.each([1, 4, 6])(
    'an old copy of the file that has %i new records, with the server four ahead, loses none',
    async (count) => {
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
    },
  );

  test('a file that goes on where it was asks the server once, and nothing is stored or counted by that', async () => {
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

  test('an old copy of the file does not pass its new records for duplicates', async () => {
    const outbox = await open();
    server.script({ kind: 'answer', status: 200, body: { ackedSeq: 700, duplicates: 1, rejected: [] } });
    await outbox.enqueue(log('not there yet'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['not there yet']);
  });
});

describe('records that can not be taken', () => {
  test('one refused record among many is found, set aside and declared; the others arrive', async () => {
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
      /^record rejected permanently and set aside: seq 37, kind log, attempts \d+, reason: refused: malformed$/,
    );
    const attempts = Number(/attempts (\d+)/.exec(notices[0]?.message ?? '')?.[1]);
    const refused = server.requests.filter(({ seqs }) => seqs.includes(37)).length;
    // but for the request that brought the declaration in its place
    expect(attempts).toBe(refused - 1);
    const [kept] = await poisonedIn(file);
    expect(JSON.parse(kept?.body ?? '')).toEqual(log('37'));
  });

  test('a server that refuses everything costs one record at most, not the queue', async () => {
    const clock = new ManualClock();
    server.behaviour = () => ({ kind: 'answer', ...refusal(413, 'too_large', {}) });
    const outbox = await open({ clock });
    await outbox.enqueue(numbered(1, 50).map(log));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    expect(outbox.status).toMatchObject({ waiting: 50, trouble: { kind: 'refused' } });
    expect(await poisonedIn(file)).toHaveLength(1);
  });

  test('a record that no request can hold is kept aside and declared at its place', async () => {
    const outbox = await open();
    await outbox.enqueue([said('s1', 'before'), said('s1', 'x'.repeat(9_000_000)), said('s1', 'after')]);
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([
      { event: { delta: 'before' } },
      { kind: 'lost', sessionId: 's1', lost: { count: 1, reason: 'record-too-large' } },
      { event: { delta: 'after' } },
    ]);
    expect((await poisonedIn(file))[0]?.body).toHaveLength(JSON.stringify(said('s1', 'x'.repeat(9_000_000))).length);
  });

  test('what the server quarantined is acknowledged and said', async () => {
    const notices: OutboxNotice[] = [];
    const rejected = [{ seq: 1, code: 'unknown_kind', message: 'what is that?' }];
    server.script({ kind: 'answer', status: 200, body: { ackedSeq: 1, rejected } });
    const outbox = await open({ onNotice: (notice) => notices.push(notice) });
    await outbox.enqueue(log('odd'));
    await outbox.idle();
    expect(notices).toMatchObject([{ kind: 'quarantined', rejected }]);
  });
});

const OF_THE_MOMENT = {
  process: { state: 'running', pid: 1, exitCode: null },
  ...{ openTurnId: null, state: 'still', tasks: [], requests: [] },
};

describe('status records that wait', () => {
  const status = (sessionId: string, at: number): OutgoingRecord => ({
    kind: 'status',
    agentId: 'agent-1',
    sessionId,
    occurredAt: at,
    status: { at },
  });
  const told = () =>
    server.ledger.records.map((record) =>
      record.kind === 'status' ? `${record.sessionId} ${record.occurredAt}` : record.kind,
    );

  test('are one of each session, the newest, and the newest of all comes last', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock() });
    for (const at of [1, 2, 3]) {
      await outbox.enqueue([status('s1', at * 10), log(`${at}`), status('s2', at * 10 + 1)]);
    }
    await outbox.enqueue(status('s1', 40));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    expect(outbox.status.waiting).toBe(5);
    await server.listen();
    outbox.kick();
    await outbox.idle();
    expect(told()).toEqual(['s2 31', 'log', 's1 40', 'log', 'log']);
  });

  test('are outdated also by those of the next process', async () => {
    await server.close();
    const first = await open({ clock: new ManualClock() });
    await first.enqueue([status('s1', 1), log('a'), status('s2', 2)]);
    await first.stop();
    const second = await open({ clock: new ManualClock(), sendAtOpen: false });
    await second.enqueue(status('s1', 3));
    await server.listen();
    second.kick();
    await second.idle();
    expect(told()).toEqual(['s2 2', 'log', 's1 3']);
  });

  test('are outdated by what comes while a request carries them only if it fails', async () => {
    server.script({ kind: 'slow', ms: 200 });
    const outbox = await open();
    await outbox.enqueue(status('s1', 1));
    await server.until(() => server.requests.length === 1);
    for (const at of [2, 3, 4]) await outbox.enqueue(status('s1', at));
    expect(outbox.status.waiting).toBe(2);
    await outbox.idle();
    expect(told()).toEqual(['s1 1', 's1 4']);

    server.behaviour = () => ({ kind: 'answer', status: 503 });
    await outbox.enqueue(status('s1', 5));
    await outbox.enqueue([log('x'), status('s1', 6)]);
    await reaches(outbox, () => (outbox.status.trouble?.tries ?? 0) > 2);
    await outbox.enqueue(status('s1', 7));
    server.behaviour = () => ({ kind: 'none' });
    await outbox.idle();
    expect(told().slice(2)).toEqual(['s1 7', 'log']);
  });

  test('replace what a request carried whose answer was lost, and are told again where the server has it', async () => {
    server.script({ kind: 'taken-then-reset' }, { kind: 'answer', status: 503 });
    const clock = new ManualClock();
    const outbox = await open({ clock });
    await outbox.enqueue(status('s1', 1));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    await outbox.enqueue(status('s1', 2));
    outbox.kick();
    await reaches(outbox, () => outbox.status.trouble?.tries === 2);
    outbox.kick();
    await outbox.idle();
    expect(told()).toEqual(['s1 1', 's1 2']);
    expect(server.ledger.records.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('are not outdated by an older one that was held back for a request which has just been answered', async () => {
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
    ['no longer say what was open where events of their session came meanwhile', 's1', false],
    ['say what was open though events of another session came meanwhile', 's2', true],
  ])('that were held back %s', async (_what, sessionId, isSaid) => {
    server.script({ kind: 'slow', ms: 200 });
    const outbox = await open();
    const says = (at: number): OutgoingRecord => {
      const lists = OF_THE_MOMENT;
      return { kind: 'status', agentId: 'agent-1', sessionId: 's1', occurredAt: at, status: { at, ...lists } };
    };
    await outbox.enqueue(says(1));
    await server.until(() => server.requests.length === 1);
    await outbox.enqueue(says(2));
    const event = { type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q' } };
    await outbox.enqueue({ kind: 'event', agentId: 'agent-1', sessionId, occurredAt: 3, event });
    await outbox.idle();
    const [, , last] = server.ledger.records as { occurredAt: number; status: Record<string, unknown> }[];
    expect(last?.occurredAt).toBe(2);
    expect(last?.status).toEqual({
      at: 2,
      ...(isSaid && OF_THE_MOMENT),
    });
  });

  test('are told again also by the next process, where the server has what one of them replaced', async () => {
    server.script({ kind: 'taken-then-reset' });
    const first = await open({ clock: new ManualClock() });
    await first.enqueue(status('s1', 1));
    await reaches(first, () => first.status.state === 'waiting');
    await first.enqueue(status('s1', 2));
    await first.stop();
    const second = await open();
    await second.idle();
    expect(told()).toEqual(['s1 1', 's1 2']);
  });

  test('are not those by which it is told how long the outbox waits', async () => {
    await server.close();
    const clock = new ManualClock();
    const outbox = await open({ clock });
    await outbox.enqueue([status('s1', 5), log('a'), status('s1', 6)]);
    clock.time += 7;
    expect((await outbox.facts()).oldestAgeMs).toBe(7);
  });

  test('keep their numbers dense through a new epoch', async () => {
    const outbox = await open();
    await outbox.enqueue([log('a'), status('s1', 1)]);
    await outbox.idle();
    server.ledger.forget();
    await server.close();
    await outbox.enqueue([log('b'), status('s1', 2), log('c')]);
    await reaches(outbox, () => (outbox.status.trouble?.tries ?? 0) > 0);
    await outbox.enqueue(status('s1', 3));
    await server.listen();
    await outbox.idle();
    await outbox.enqueue(status('s1', 4));
    await outbox.idle();
    expect(told()).toEqual(['log', 's1 1', 'lost', 'log', 's1 3', 'log', 's1 4']);
  });
});

describe('a full outbox', () => {
  test('log lines go first, then the newest of everything; each drop is declared at its place', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), bound: { maxRows: 10, maxBytes: 1_000_000 } });
    for (const text of numbered(1, 12)) await outbox.enqueue(log(text));
    await outbox.enqueue(said('s1', 'still fits'));
    for (let at = 0; at < 5; at += 1) await outbox.enqueue(said(`s${at % 2}`, 'too late'));
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(said('s1', 'room again'));
    await outbox.idle();
    expect(server.ledger.messages).toEqual(numbered(1, 9));
    expect(server.ledger.records.slice(9)).toMatchObject([
      { kind: 'lost', lost: { count: 3, reason: 'outbox-full' } },
      { kind: 'lost', sessionId: 's1', lost: { count: 3 } },
      { kind: 'lost', sessionId: 's0', lost: { count: 3 } },
      { event: { delta: 'room again' } },
    ]);
  });

  test('has room for the failures that its log tells, and not for its other signals', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), bound: { maxRows: 10, maxBytes: 1_000_000 } });
    await outbox.enqueue(numbered(1, 9).map((text) => said('s1', text)));
    const telling = (message: string, insight: object): OutgoingRecord => ({
      kind: 'log',
      agentId: 'agent-1',
      occurredAt: 1_795_000_000_000,
      log: { level: 'info', component: 'test', message, insight },
    });
    await outbox.enqueue(telling('failed', { signal: 'disk', outcome: 'failed', source: 'disk' }));
    await outbox.enqueue(telling('as it is', { signal: 'context_ratio', value: 0.4, source: 'context' }));
    await server.listen();
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.messages).toEqual(['failed']);
    expect(server.ledger.lost).toBe(1);
  });

  test('a loss that was declared to the server is not changed afterwards', async () => {
    const clock = new ManualClock();
    const outbox = await open({ clock, bound: { maxRows: 2, maxBytes: 1_000_000 } });
    server.script({ kind: 'taken-then-reset' });
    await server.close();
    await outbox.enqueue([said('s1', '1'), said('s1', '2'), said('s1', 'dropped')]);
    await reaches(outbox, () => outbox.status.state === 'waiting');
    await server.listen();
    outbox.kick();
    await reaches(outbox, () => outbox.status.trouble?.tries === 2);
    await outbox.enqueue(said('s1', 'dropped as well'));
    outbox.kick();
    await outbox.idle();
    expect(server.ledger.lost).toBe(2);
  });

  test('a loss that the server has already, without its having been sent, counts no further drops', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock(), maxBatchRows: 1, bound: { maxRows: 9, maxBytes: 1_000 } });
    const tooLarge = 'x'.repeat(2_000);
    await outbox.enqueue([said('s1', 'fits'), said('s1', tooLarge)]);
    await reaches(outbox, () => outbox.status.state === 'waiting');
    const records = [1, 2].map((seq) => ({ seq, ...said('s1', 'from a newer copy of the file') }) as never);
    await server.ledger.take({ producer: outbox.status.producer, records });
    server.script({ kind: 'answer', ...refusal(409, 'sequence_gap', { expectedSeq: 3 }) });
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(said('s1', tooLarge));
    await outbox.idle();
    expect(server.ledger.records.slice(2)).toMatchObject([
      { seq: 3, kind: 'lost', sessionId: 's1', lost: { count: 1, reason: 'outbox-full' } },
    ]);
  });
});

test('whatever becomes of a record, its size is that of its JSON in bytes', async () => {
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
  const of = (delta: string) => candidateOf(JSON.stringify({ ...said('сеанс', delta), agentId: 'агент' }));
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

  test('is noticed in mid-life as well, and the work goes on in a new file', async () => {
    await server.close();
    const outbox = await open({ clock: new ManualClock() });
    // more than SQLite keeps in memory, so that it has to read the damaged pages
    await outbox.enqueue(numbered(1, 40).map((text) => said('s1', text.repeat(300_000))));
    await reaches(outbox, () => outbox.status.state === 'waiting');
    for (const name of [file, `${file}-wal`]) {
      const size = statSync(name).size;
      writeFileSync(name, Buffer.alloc(Math.max(size - 4_096, 0), 0xff), { flag: 'r+' });
    }
    await server.listen();
    outbox.kick();
    await outbox.idle();
    await outbox.enqueue(said('s1', 'goes on'));
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([
      { seq: 1, kind: 'lost', lost: { reason: 'outbox-corrupt' } },
      { seq: 2, event: { delta: 'goes on' } },
    ]);
  });

  test('an empty file is no damage', async () => {
    await writeFile(file, '');
    const outbox = await open();
    await outbox.enqueue(log('fine'));
    await outbox.idle();
    expect(server.ledger.records).toMatchObject([{ seq: 1, kind: 'log' }]);
    expect(existsSync(file)).toBe(true);
  });
});
