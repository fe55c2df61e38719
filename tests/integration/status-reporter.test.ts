import { join } from 'node:path';
import type { IngestRecord } from '@interlude/protocol/envelope';
import { StatusReporter } from '@interlude/runner/host/status-report';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { expect, onTestFinished, test } from 'vitest';
import { InstantClock } from '../support/clocks';
import { FaultServer } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

/** Status reports into a real outbox that can't send. */
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
  const enqueue = (record: object) =>
    outbox.enqueue({ agentId: 'agent-1', sessionId: 's1', occurredAt: Date.now(), ...record } as never);
  const status = new StatusReporter({
    report: async () => {
      const now = turns;
      await enqueue({ kind: 'status', status: { turns: now } });
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
  const reports = () =>
    server.ledger.records.flatMap((record: IngestRecord) =>
      record.kind === 'status' ? [(record.status as { turns: number }).turns] : [],
    );
  /** A turn as hooks report it: an event, with a changed status. */
  const turn = async () => {
    turns += 1;
    status.changed();
    await enqueue({ kind: 'event', event: { type: 'CUSTOM', name: 'turn', value: turns } });
    await new Promise((resolve) => setTimeout(resolve, 12));
  };
  const eventually = (look: () => unknown) => expect.poll(look, { interval: 10 });
  return { server, outbox, status, turn, reports, reported: () => reported, eventually };
}

test('a long outage leaves only the newest status report, and no older one follows it', async () => {
  const { server, outbox, turn, reports, reported, eventually } = await reporting();
  await eventually(reports).toEqual([0]);
  await server.close();
  for (let index = 0; index < 60; index += 1) await turn();
  await eventually(() => outbox.status.trouble).not.toBeNull();
  await turn();
  await eventually(reported).toBe(61);
  // 61 events and one report.
  await eventually(() => outbox.status.waiting).toBe(62);
  await server.listen();
  await outbox.idle();
  expect(reports()).toEqual([0, 61]);
});

test('a server that accepts requests and never answers gets no older report after a newer one', async () => {
  const { server, outbox, turn, reports, eventually } = await reporting();
  await eventually(reports).toEqual([0]);
  server.script({ kind: 'taken-then-silence' });
  for (let index = 0; index < 20; index += 1) await turn();
  await server.close();
  await server.listen();
  await outbox.idle();
  await eventually(() => reports().at(-1)).toBe(20);
  expect(reports()).toEqual([...reports()].sort((a, b) => a - b));
  expect(reports().length).toBeLessThanOrEqual(4);
});

test('a change is reported soon while requests succeed', async () => {
  const { turn, reports, eventually } = await reporting();
  await turn();
  await eventually(reports).toEqual([0, 1]);
});

test('the end of a runner is reported after an outage of any length', async () => {
  const { server, outbox, status, turn, reports, eventually } = await reporting();
  await eventually(reports).toEqual([0]);
  await server.close();
  await turn();
  await eventually(() => outbox.status.trouble).not.toBeNull();
  await turn();
  await status.stop();
  await server.listen();
  await outbox.idle();
  expect(reports().at(-1)).toBe(2);
});
