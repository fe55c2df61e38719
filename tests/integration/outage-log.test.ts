import { join } from 'node:path';
import type { LogRecord } from '@interlude/protocol/envelope';
import { DeliveryJournal } from '@interlude/runner/logger/delivery-journal';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import { createOutboxLogger } from '@interlude/runner/logger/logger';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { expect, onTestFinished, test } from 'vitest';
import { InstantClock } from '../support/clocks';
import { FaultServer, refusal } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

/** A runner's log, written into the outbox whose outages it reports. */
async function logging(level?: string) {
  const server = await FaultServer.start();
  const folder = await tempDir();
  const clock = new InstantClock();
  let journal: DeliveryJournal | null = null;
  const outbox = await Outbox.open(join(folder, 'outbox.db'), {
    producerId: 'producer-1',
    agentId: 'agent-1',
    endpoint: async () => ({ url: server.url, token: 'a-token-of-the-test' }),
    clock,
    onStatus: (status) => journal?.outboxChanged(status),
    onNotice: (notice) => journal?.notice(notice),
  });
  const logger = createOutboxLogger({ agentId: 'agent-1', dir: folder, level: new LevelSwitch(level) }, outbox);
  const opened = new DeliveryJournal({ logger, meanwhile: 'the agent continues', now: () => clock.now() });
  journal = opened;
  onTestFinished(async () => {
    await outbox.stop();
    logger.close();
    await server.close();
  });
  const writeEvent = (sessionId = 's1') =>
    outbox.enqueue({
      kind: 'event',
      agentId: 'agent-1',
      sessionId,
      occurredAt: 1_795_000_000_000,
      event: { type: 'CUSTOM', name: 'turn' },
    });
  const lines = () =>
    server.ledger.records.filter((record): record is LogRecord & { seq: number } => record.kind === 'log');
  const logged = () => lines().map(({ log }) => `${log.level} ${log.component} ${log.message}`);
  const untilTries = (count: number) =>
    expect.poll(() => outbox.status.trouble?.tries ?? 0, { interval: 5 }).toBeGreaterThan(count);
  return { server, outbox, journal: opened, writeEvent, lines, logged, untilTries };
}

const REFUSED = 'the dashboard can’t be reached (ECONNREFUSED); the agent continues, and its events are sent later';

test('an outage is logged when it starts and when it ends, for any number of attempts', async () => {
  const { server, outbox, journal, writeEvent, logged, untilTries } = await logging();
  await server.close();
  await writeEvent();
  await untilTries(50);
  journal.linkChanged({ state: 'waiting', cause: 'unavailable', message: 'ECONNREFUSED' });
  journal.linkChanged({ state: 'waiting', cause: 'unavailable', message: 'the server fell silent' });
  await writeEvent();
  await server.listen();
  await outbox.idle();
  expect(logged()).toEqual([`warn outbox ${REFUSED}`]);
  journal.linkChanged({ state: 'connected' });
  await outbox.idle();
  expect(logged()).toEqual([
    `warn outbox ${REFUSED}`,
    'info commands connected',
    expect.stringMatching(/^info outbox reconnected after \d[\d.]* (s|min|h|d)( \d+ (s|min|h))?, 3 records sent$/),
  ]);
});

test('an outage is logged again when its cause changes, and not when only its wording does', async () => {
  const { server, outbox, writeEvent, logged, untilTries } = await logging();
  server.behaviour = () =>
    server.requests.length % 2 === 0 ? { kind: 'reset' } : { kind: 'answer', status: 503, body: { error: {} } };
  await writeEvent();
  await untilTries(9);
  server.behaviour = () => ({ kind: 'answer', ...refusal(401, 'unauthenticated', {}) });
  await untilTries(20);
  server.behaviour = () => ({ kind: 'none' });
  await outbox.idle();
  expect(logged()).toEqual([
    expect.stringMatching(/^warn outbox the dashboard can’t be reached \(/),
    expect.stringMatching(/^warn outbox the dashboard refuses the token \(refused: unauthenticated\); /),
    expect.stringMatching(/^info outbox reconnected after /),
  ]);
});

test('each attempt is logged at debug with its error and the next delay, on one line', async () => {
  const { server, outbox, writeEvent, logged, untilTries } = await logging('debug');
  await server.close();
  await writeEvent();
  await untilTries(5);
  const waited = outbox.status.waiting;
  const tried = outbox.status.trouble?.tries ?? 0;
  // What happened, the line of the outage, and one of each attempt.
  expect(waited).toBeLessThanOrEqual(tried + 3);
  await server.listen();
  await outbox.idle();
  const tryLines = logged().filter((line) => line.startsWith('debug outbox attempt '));
  expect(tryLines.slice(0, 2)).toEqual([
    expect.stringMatching(/^debug outbox attempt 1 failed: ECONNREFUSED; next one in 0\.\d s$/),
    expect.stringMatching(/^debug outbox attempt 2 failed: ECONNREFUSED; next one in 1\.\d s$/),
  ]);
});

test('a permanently refused record is logged as FATAL and needs attention', async () => {
  const { server, outbox, writeEvent, lines } = await logging();
  await writeEvent();
  await outbox.idle();
  let isRefused = true;
  server.behaviour = ({ seqs }) => {
    if (!isRefused || !seqs.includes(2)) return { kind: 'none' };
    isRefused = seqs.length > 1;
    return { kind: 'answer', ...refusal(400, 'malformed', {}) };
  };
  await writeEvent('s2');
  await outbox.idle();
  expect(lines().map(({ log }) => log)).toMatchObject([
    {
      level: 'fatal',
      component: 'outbox',
      message:
        'record rejected permanently and set aside: seq 2, kind event, session s2, attempts 1, reason: refused: malformed; resend or discard it with "interlude outbox"',
      insight: { signal: 'outbox_poisoned', value: 2, outcome: 'failed', source: 'outbox', sessionId: 's2' },
    },
  ]);
});

test('a refused line about a refused record is not reported in turn', async () => {
  const { server, outbox, writeEvent, lines } = await logging();
  let refusals = 0;
  server.behaviour = ({ seqs }) => {
    const isLoss = refusals > 0 && seqs.length === 1 && seqs[0] === refusals;
    if (isLoss || refusals === 2) return { kind: 'none' };
    refusals += 1;
    return { kind: 'answer', ...refusal(400, 'malformed', {}) };
  };
  await writeEvent();
  await outbox.idle();
  await writeEvent();
  await outbox.idle();
  expect(lines()).toEqual([]);
  expect(server.ledger.lost).toBe(2);
});
