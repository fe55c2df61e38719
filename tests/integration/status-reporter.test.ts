import { join } from 'node:path';
import type { IngestRecord } from '@interlude/protocol/envelope';
import { StatusReporter } from '@interlude/runner/host/status-report';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { expect, onTestFinished, test } from 'vitest';
import { InstantClock } from '../support/clocks';
import { FaultServer } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

/** How a runner is, told into a real outbox that can't get rid of anything. */
async function reporting() {
  const server = await FaultServer.start();
  const outbox = await Outbox.open(join(await tempDir(), 'outbox.db'), {
    producerId: 'producer-1',
    agentId: 'agent-1',
    endpoint: async () => ({ url: server.url, token: 'a-token-of-the-test' }),
    clock: new InstantClock(),
  });
  let turns = 0;
  let reported = 0;
  const tell = (record: object) =>
    outbox.enqueue({ agentId: 'agent-1', sessionId: 's1', occurredAt: Date.now(), ...record } as never);
  const status = new StatusReporter({
    report: async () => {
      const now = turns;
      await tell({ kind: 'status', status: { turns: now } });
      reported = now;
    },
    soonMs: 5,
  });
  onTestFinished(async () => {
    await status.stop();
    await outbox.stop();
    await server.close();
  });
  await status.start();
  const told = () =>
    server.ledger.records.flatMap((record: IngestRecord) =>
      record.kind === 'status' ? [(record.status as { turns: number }).turns] : [],
    );
  /** A turn as its hooks tell of it: something happened, and how the runner is has changed by it. */
  const turn = async () => {
    turns += 1;
    status.changed();
    await tell({ kind: 'event', event: { type: 'CUSTOM', name: 'turn', value: turns } });
    await new Promise((resolve) => setTimeout(resolve, 12));
  };
  const settled = (look: () => unknown) => expect.poll(look, { interval: 10 });
  return { server, outbox, status, turn, told, reported: () => reported, settled };
}

test('a long outage leaves one report of how a runner is, the newest, and none that is older comes behind it', async () => {
  const { server, outbox, turn, told, reported, settled } = await reporting();
  await settled(told).toEqual([0]);
  await server.close();
  for (let at = 0; at < 60; at += 1) await turn();
  await settled(() => outbox.status.trouble).not.toBeNull();
  await turn();
  await settled(reported).toBe(61);
  // 61 events, and the one report
  await settled(() => outbox.status.waiting).toBe(62);
  await server.listen();
  await outbox.idle();
  expect(told()).toEqual([0, 61]);
});

test('a server that takes requests and never answers is told no older report behind a newer one', async () => {
  const { server, outbox, turn, told, settled } = await reporting();
  await settled(told).toEqual([0]);
  server.script({ kind: 'taken-then-silence' });
  for (let at = 0; at < 20; at += 1) await turn();
  await server.close();
  await server.listen();
  await outbox.idle();
  await settled(() => told().at(-1)).toBe(20);
  expect(told()).toEqual([...told()].sort((a, b) => a - b));
  expect(told().length).toBeLessThanOrEqual(4);
});

test('a change is told soon while everything gets through', async () => {
  const { turn, told, settled } = await reporting();
  await turn();
  await settled(told).toEqual([0, 1]);
});

test('how a runner ended is told however long nothing has got through', async () => {
  const { server, outbox, status, turn, told, settled } = await reporting();
  await settled(told).toEqual([0]);
  await server.close();
  await turn();
  await settled(() => outbox.status.trouble).not.toBeNull();
  await turn();
  await status.stop();
  await server.listen();
  await outbox.idle();
  expect(told().at(-1)).toBe(2);
});
