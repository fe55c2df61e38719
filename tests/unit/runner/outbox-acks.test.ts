import { join } from 'node:path';
import type { OutboxNotice } from '@interlude/runner/outbox/delivery';
import { Outbox, type OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { refusal } from '@/tests/support/fault-server';
import { InstantClock } from '../../support/clocks';
import { FaultServer } from '../../support/fault-server';
import { tempDir } from '../../support/temp-dir';

let server: FaultServer;
let notices: OutboxNotice[];
let outbox: Outbox;

beforeEach(async () => {
  server = await FaultServer.start();
  notices = [];
  outbox = await Outbox.open(join(await tempDir(), 'outbox.db'), {
    producerId: 'producer-1',
    agentId: 'agent-1',
    endpoint: async () => ({ url: server.url, token: 'a-token-of-the-test' }),
    clock: new InstantClock(),
    onNotice: (notice) => notices.push(notice),
  });
  onTestFinished(async () => void (await outbox.stop()));
});
afterEach(() => server.close());

const lines = (count: number): OutgoingRecord[] =>
  Array.from({ length: count }, (_, index) => ({
    kind: 'log',
    agentId: 'agent-1',
    occurredAt: 1_795_000_000_000,
    log: { level: 'info', component: 'test', message: `line ${index + 1}` },
  }));

const acked = (ackedSeq: number) => ({
  kind: 'answer' as const,
  status: 200,
  body: { ackedSeq, accepted: 1, duplicates: 0, rejected: [], position: '1' },
});
const sent = () => server.requests.map(({ seqs }) => seqs);

test('resends unacknowledged records', async () => {
  server.behaviour = ({ seqs }) => acked(Math.min((seqs[0] ?? 0) + 1, seqs.at(-1) ?? 0));
  await outbox.enqueue(lines(5));
  await outbox.idle();
  expect(sent()).toEqual([[1, 2, 3, 4, 5], [3, 4, 5], [5]]);
});

test('deletes acknowledged records', async () => {
  await outbox.enqueue(lines(3));
  await outbox.idle();
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect(sent()).toEqual([[1, 2, 3], [4]]);
  expect(await outbox.facts()).toMatchObject({ depth: 0, oldestAgeMs: null });
});

test('keeps records beyond a lower acknowledgement', async () => {
  await outbox.enqueue(lines(2));
  await outbox.idle();
  server.script(acked(1));
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect(sent()).toEqual([[1, 2], [3], [3]]);
});

test('reports each rejected record except its own log lines', async () => {
  const rejected = [1, 2].map((seq) => ({ seq, code: 'agent_of_another_token', message: 'not yours' }));
  server.script({ kind: 'answer', status: 200, body: { ...acked(2).body, rejected } });
  const [line] = lines(1) as [Extract<OutgoingRecord, { kind: 'log' }>];
  const status: OutgoingRecord = { ...line, kind: 'status', sessionId: 's1', status: {} };
  await outbox.enqueue([{ ...line, log: { ...line.log, component: 'outbox' } }, status]);
  await outbox.idle();
  expect(notices).toMatchObject([{ kind: 'quarantined', rejected: [{ seq: 2, sessionId: 's1' }] }]);
});

test('declares records lost by the server and sends the rest in a new epoch', async () => {
  await outbox.enqueue(lines(2));
  await outbox.idle();
  const { epoch } = outbox.status.producer;
  server.ledger.forget();
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect(notices).toMatchObject([{ kind: 'lost-by-server', count: 2 }]);
  expect(server.ledger.records.slice(2)).toMatchObject([
    { seq: 1, kind: 'lost', lost: { count: 2, reason: 'lost-by-server' } },
    { seq: 2, kind: 'log' },
  ]);
  expect(outbox.status.producer.epoch).toBeGreaterThan(epoch);
});

test('renumbers records whose numbers the server has', async () => {
  server.script(acked(7));
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect(notices).toMatchObject([{ kind: 'rewound' }]);
  expect(server.ledger.messages).toEqual(['line 1']);
});

test('starts a new epoch at the server’s time when the local clock is ahead', async () => {
  const { epoch } = outbox.status.producer;
  server.ledger.now = epoch - 3_600_000;
  await outbox.enqueue(lines(3));
  await outbox.idle();
  expect(notices).toMatchObject([{ level: 'warn', kind: 'clock-ahead' }]);
  expect(outbox.status.producer.epoch).toBe(server.ledger.now);
  expect(server.ledger.messages).toEqual(['line 1', 'line 2', 'line 3']);
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect([notices.length, server.ledger.messages.length, server.ledger.lost]).toEqual([1, 4, 0]);
});

test('declares records of another server whose clock was ahead', async () => {
  await outbox.enqueue(lines(2));
  await outbox.idle();
  const { epoch } = outbox.status.producer;
  server.ledger.forget();
  server.ledger.now = epoch - 3_600_000;
  await outbox.enqueue(lines(1));
  await outbox.idle();
  expect(notices.map(({ kind }) => kind)).toEqual(['lost-by-server', 'clock-ahead']);
  expect(server.ledger.lost).toBe(2);
});

test('waits for the server’s clock after an outbox that was as far ahead', async () => {
  const { id, epoch } = outbox.status.producer;
  const [line] = lines(1);
  server.ledger.take({ producer: { id, epoch: epoch - 1 }, records: [{ seq: 1, ...line } as never] });
  server.ledger.now = epoch - 3_600_000;
  await outbox.enqueue(lines(1));
  await server.until(() => server.requests.length > 2);
  expect([server.ledger.records.length, notices]).toEqual([1, []]);
  server.ledger.now = epoch;
  await outbox.idle();
  expect(server.ledger.records).toHaveLength(2);
});

test('declares a record lost that the server always rejects', async () => {
  server.behaviour = ({ seqs }) =>
    seqs.includes(2) && notices.length === 0 ? { kind: 'answer', ...refusal(400, 'malformed', {}) } : { kind: 'none' };
  await outbox.enqueue(lines(3));
  await outbox.idle();
  expect(server.ledger.records).toMatchObject([
    { seq: 1, kind: 'log' },
    { seq: 2, kind: 'lost', lost: { count: 1, reason: 'refused-by-server' } },
    { seq: 3, kind: 'log' },
  ]);
  expect(await outbox.facts()).toMatchObject({ poisoned: 1 });
});
