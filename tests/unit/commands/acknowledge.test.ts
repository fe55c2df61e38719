import type { Ack, CommandState } from '@interlude/protocol/commands';
import { COMMAND_EXPIRY_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { queueCommand } from '@/lib/server/commands/queue-command';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { acknowledge, expireCommands } from '@/lib/server/commands/settle-command';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../../support/ingest-target';

const T0 = 10_000;
const LATER = T0 + COMMAND_EXPIRY_MS;
const [OLD, NEW] = [
  { id: 'old', startedAt: 1_000 },
  { id: 'new', startedAt: 2_000 },
];

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget(() => T0);
  await ingest(target, [marker(1)]);
  const ids = { id: 'c1', agentId: 'a1', sessionId: 's1' };
  await write((transaction) =>
    queueCommand(transaction, { ...ids, type: 'task.stop', body: { taskId: 't1' }, now: T0 }),
  );
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const ack = (state: Ack['state'], runner: typeof OLD | null = null) =>
  write(async (transaction) => (await acknowledge(transaction, 'a1', 'c1', { state }, runner, T0)).state);

const BRING_TO: Record<CommandState, () => Promise<unknown>> = {
  queued: async () => {},
  delivered: () => ack('delivered'),
  done: () => ack('done'),
  failed: () => ack('failed'),
  expired: () => write((transaction) => expireCommands(transaction, { now: LATER, isTrusted: true })),
};

/** Only `expired` can change. */
test.each<[CommandState, Record<Ack['state'], CommandState>]>([
  ['queued', { delivered: 'delivered', done: 'done', failed: 'failed' }],
  ['delivered', { delivered: 'delivered', done: 'done', failed: 'failed' }],
  ['done', { delivered: 'done', done: 'done', failed: 'done' }],
  ['failed', { delivered: 'failed', done: 'failed', failed: 'failed' }],
  ['expired', { delivered: 'delivered', done: 'done', failed: 'expired' }],
])('an acknowledgement of a command that is %s ends it once', async (before, after) => {
  for (const state of ['delivered', 'done', 'failed'] as const) {
    await write((transaction) => transaction.execute(`UPDATE commands SET state = 'queued'`));
    await BRING_TO[before]();
    expect([state, await ack(state)]).toEqual([state, after[state]]);
  }
});

test('refuses an acknowledgement of a superseded runner', async () => {
  for (const [runner, stream] of [
    [OLD, 'one'],
    [NEW, 'two'],
  ] as const) {
    await write((transaction) => connectRunner(transaction, 'a1', runner, stream, T0));
  }
  await expect(ack('done', OLD)).rejects.toMatchObject({ code: 'stale_epoch' });
  expect(await ack('done', NEW)).toBe('done');
});
