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

/** A runner's log, written into the very outbox whose outages it tells. */
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
  const told = new DeliveryJournal({ logger, meanwhile: 'the agent continues', now: () => clock.now() });
  journal = told;
  onTestFinished(async () => {
    await outbox.stop();
    logger.close();
    await server.close();
  });
  const happens = (sessionId = 's1') =>
    outbox.enqueue({
      kind: 'event',
      agentId: 'agent-1',
      sessionId,
      occurredAt: 1_795_000_000_000,
      event: { type: 'CUSTOM', name: 'turn' },
    });
  const lines = () =>
    server.ledger.records.filter((record): record is LogRecord & { seq: number } => record.kind === 'log');
  const said = () => lines().map(({ log }) => `${log.level} ${log.component} ${log.message}`);
  const tries = (count: number) =>
    expect.poll(() => outbox.status.trouble?.tries ?? 0, { interval: 5 }).toBeGreaterThan(count);
  return { server, outbox, journal: told, happens, lines, said, tries };
}

const REFUSED = 'the dashboard can’t be reached (ECONNREFUSED); the agent continues, and its events are sent later';

test('an outage is told as it begins and as it ends, however often it was tried in between', async () => {
  const { server, outbox, journal, happens, said, tries } = await logging();
  await server.close();
  await happens();
  await tries(50);
  journal.linkChanged({ state: 'waiting', cause: 'unavailable', message: 'ECONNREFUSED' });
  journal.linkChanged({ state: 'waiting', cause: 'unavailable', message: 'the server fell silent' });
  await happens();
  await server.listen();
  await outbox.idle();
  expect(said()).toEqual([`warn outbox ${REFUSED}`]);
  journal.linkChanged({ state: 'connected' });
  await outbox.idle();
  expect(said()).toEqual([
    `warn outbox ${REFUSED}`,
    'info commands connected',
    expect.stringMatching(/^info outbox back after (\d+ h )?(\d+ m )?\d+[.\d]* [sm], 3 records sent$/),
  ]);
});

test('an outage that turns into another kind is told again, one that only words it otherwise is not', async () => {
  const { server, outbox, happens, said, tries } = await logging();
  server.behaviour = () =>
    server.requests.length % 2 === 0 ? { kind: 'reset' } : { kind: 'answer', status: 503, body: { error: {} } };
  await happens();
  await tries(9);
  server.behaviour = () => ({ kind: 'answer', ...refusal(401, 'unauthenticated', {}) });
  await tries(20);
  server.behaviour = () => ({ kind: 'none' });
  await outbox.idle();
  expect(said()).toEqual([
    expect.stringMatching(/^warn outbox the dashboard can’t be reached \(/),
    expect.stringMatching(/^warn outbox the dashboard refuses the token \(refused: unauthenticated\); /),
    expect.stringMatching(/^info outbox back after /),
  ]);
});

test('each try is told at debug, with why it failed and when the next one is, one line a try', async () => {
  const { server, outbox, happens, said, tries } = await logging('debug');
  await server.close();
  await happens();
  await tries(5);
  const waited = outbox.status.waiting;
  const tried = outbox.status.trouble?.tries ?? 0;
  // what happened, the outage's own line, and one of each try
  expect(waited).toBeLessThanOrEqual(tried + 3);
  await server.listen();
  await outbox.idle();
  const tryLines = said().filter((line) => line.startsWith('debug outbox attempt '));
  expect(tryLines.slice(0, 2)).toEqual([
    expect.stringMatching(/^debug outbox attempt 1 failed: ECONNREFUSED; next one in 0\.\d s$/),
    expect.stringMatching(/^debug outbox attempt 2 failed: ECONNREFUSED; next one in 1\.\d s$/),
  ]);
});

test('a record that is refused for good is told as FATAL, and wants a person’s look', async () => {
  const { server, outbox, happens, lines } = await logging();
  await happens();
  await outbox.idle();
  let isRefused = true;
  server.behaviour = ({ seqs }) => {
    if (!isRefused || !seqs.includes(2)) return { kind: 'none' };
    isRefused = seqs.length > 1;
    return { kind: 'answer', ...refusal(400, 'malformed', {}) };
  };
  await happens('s2');
  await outbox.idle();
  expect(lines().map(({ log }) => log)).toMatchObject([
    {
      level: 'fatal',
      component: 'outbox',
      message:
        'record rejected permanently and set aside: seq 2, kind event, session s2, attempts 1, reason: refused: malformed',
      insight: { signal: 'outbox_poisoned', value: 2, outcome: 'failed', source: 'outbox', sessionId: 's2' },
    },
  ]);
});

test('a line that tells of a refused record and is refused itself is not told of in turn', async () => {
  const { server, outbox, happens, lines } = await logging();
  let refusals = 0;
  server.behaviour = ({ seqs }) => {
    const isLoss = refusals > 0 && seqs.length === 1 && seqs[0] === refusals;
    if (isLoss || refusals === 2) return { kind: 'none' };
    refusals += 1;
    return { kind: 'answer', ...refusal(400, 'malformed', {}) };
  };
  await happens();
  await outbox.idle();
  await happens();
  await outbox.idle();
  expect(lines()).toEqual([]);
  expect(server.ledger.lost).toBe(2);
});
