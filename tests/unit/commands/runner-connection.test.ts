import { COMMAND_EXPIRY_MS, COMMAND_LEASE_MS, INTERRUPT_EXPIRY_MS, RUNNER_AWAY_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { claimCommands } from '@/lib/server/commands/command-stream';
import { queueCommand } from '@/lib/server/commands/queue-command';
import { connectRunner, disconnectExpired, renewRunners } from '@/lib/server/commands/runner-connection';
import { acknowledge, expireCommands } from '@/lib/server/commands/settle-command';
import { readAgent } from '@/lib/server/queries/read-agents';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../../support/ingest-target';

/** The runner that receives commands, with an injected clock. */
const [OLD, NEW] = [
  { id: 'old', startedAt: 1_000 },
  { id: 'new', startedAt: 2_000 },
];
const T0 = 10_000;

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget(() => T0);
  await ingest(target, [marker(1)]);
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const connect = (runner: typeof OLD, streamId: string, now = T0) =>
  write((transaction) => connectRunner(transaction, 'a1', runner, streamId, now));
const agent = async () => (await readAgent(unscoped(target.database), 'a1'))?.agent;
const stop = (id: string) =>
  write((transaction) =>
    queueCommand(transaction, {
      id,
      agentId: 'a1',
      sessionId: 's1',
      type: 'task.stop',
      body: { taskId: 't1' },
      now: T0,
    }),
  );
const LIVE = Number.MAX_SAFE_INTEGER;
const claim = (streamId: string, now: number, after = LIVE) =>
  write((transaction) => claimCommands(transaction, { agentId: 'a1', runner: NEW, streamId, after, now }));
const idsOf = (outcome: Awaited<ReturnType<typeof claim>>) =>
  outcome.kind === 'claimed' ? outcome.commands.map(({ command }) => command.id) : outcome.kind;

describe('of two runners of one agent', () => {
  it('fences the first, even if it reports a later start', async () => {
    await connect({ ...OLD, startedAt: 9_000_000_000_000 }, 'zero');
    expect(await connect({ ...NEW, startedAt: 1 }, 'zero-two')).toEqual({ kind: 'connected' });
    expect(await connect({ ...OLD, startedAt: 9_000_000_000_000 }, 'zero-three')).toMatchObject({ kind: 'fenced' });
    expect(await agent()).toMatchObject({ runnerId: 'new' });
  });

  it('fences the older when it returns', async () => {
    await connect(OLD, 'one');
    expect(await connect(NEW, 'two')).toEqual({ kind: 'connected' });
    expect(await connect(OLD, 'three')).toMatchObject({ kind: 'fenced', by: NEW });
    expect(await agent()).toMatchObject({ connection: 'connected', runnerId: 'new', connectedSince: T0 });
  });

  it('an absent one fences none, also after the clock was set back', async () => {
    await connect(NEW, 'one');
    expect(await connect(OLD, 'two', T0 + RUNNER_AWAY_MS + 1)).toEqual({ kind: 'connected' });
    expect(await agent()).toMatchObject({ runnerId: 'old' });
  });

  it('an unnamed one may acknowledge', async () => {
    await connect(OLD, 'zero');
    await connect(NEW, 'one');
    await stop('c1');
    const ack = (runner: typeof OLD | null) =>
      write((transaction) => acknowledge(transaction, 'a1', 'c1', { state: 'done' }, runner, T0));
    await expect(ack(OLD)).rejects.toMatchObject({ code: 'stale_epoch' });
    expect(await ack(null)).toEqual({ commandId: 'c1', state: 'done' });
  });
});

describe('a runner whose server died', () => {
  it('is away when its term runs out', async () => {
    await connect(NEW, 'one');
    expect(await write((transaction) => disconnectExpired(transaction, T0 + RUNNER_AWAY_MS - 1))).toBe(0);
    await write((transaction) => renewRunners(transaction, ['one'], T0 + 4_000));
    expect(await write((transaction) => disconnectExpired(transaction, T0 + RUNNER_AWAY_MS))).toBe(0);
    expect(await write((transaction) => disconnectExpired(transaction, T0 + 4_000 + RUNNER_AWAY_MS))).toBe(1);
    expect(await agent()).toMatchObject({ connection: 'away', connectedSince: T0 + 4_000 + RUNNER_AWAY_MS });
  });
});

describe('a command', () => {
  it('is claimed again only after its lease', async () => {
    await connect(NEW, 'one');
    await stop('c1');
    expect(idsOf(await claim('one', T0))).toEqual(['c1']);
    expect(idsOf(await claim('one', T0 + COMMAND_LEASE_MS - 1))).toEqual([]);
    expect(idsOf(await claim('one', T0 + COMMAND_LEASE_MS))).toEqual(['c1']);
  });

  it('is claimed at once by a stream that has not sent it', async () => {
    await connect(NEW, 'one');
    await stop('c1');
    await claim('one', T0);
    await connect(NEW, 'two');
    expect(idsOf(await claim('two', T0, 0))).toEqual(['c1']);
    expect(idsOf(await claim('one', T0))).toBe('replaced');
  });

  it('is claimed after delivery only by a runner without a position', async () => {
    await connect(NEW, 'one');
    await stop('c1');
    await claim('one', T0);
    await write((transaction) => acknowledge(transaction, 'a1', 'c1', { state: 'delivered' }, NEW, T0));
    expect(idsOf(await claim('one', T0 + 2 * COMMAND_LEASE_MS))).toEqual([]);
    expect(idsOf(await claim('one', T0, 0))).toEqual(['c1']);
  });

  it('can be done after it expired', async () => {
    await stop('c1');
    const late = T0 + COMMAND_EXPIRY_MS;
    expect(await write((transaction) => expireCommands(transaction, { now: late - 1, isTrusted: false }))).toBe(0);
    expect(await write((transaction) => expireCommands(transaction, { now: late, isTrusted: false }))).toBe(1);
    const ack = (state: 'done' | 'failed') =>
      write((transaction) => acknowledge(transaction, 'a1', 'c1', { state }, null, late));
    expect((await ack('failed')).state).toBe('expired');
    expect((await ack('done')).state).toBe('done');
    const { rows } = await target.database.reader.execute(
      `SELECT payload->>'$.name' AS name, payload->>'$.value.reason' AS reason FROM events WHERE producer_id = 'interlude' ORDER BY position`,
    );
    expect(rows.map(({ name, reason }) => [name, reason])).toEqual([
      ['command:queued', null],
      ['command:failed', 'no runner received it within 10 minutes'],
      ['command:done', null],
    ]);
  });

  it('expires within seconds when it is an interrupt', async () => {
    const fields = { id: 'c1', agentId: 'a1', sessionId: 's1', now: T0 };
    await write((transaction) => queueCommand(transaction, { ...fields, type: 'interrupt', body: { turnId: 'r1' } }));
    await connect(NEW, 'one');
    const late = T0 + INTERRUPT_EXPIRY_MS;
    expect(idsOf(await claim('one', late, 0))).toEqual([]);
    expect(await write((transaction) => expireCommands(transaction, { now: late - 1, isTrusted: false }))).toBe(0);
    expect(await write((transaction) => expireCommands(transaction, { now: late, isTrusted: false }))).toBe(1);
    const { rows } = await target.database.reader.execute(`SELECT reason FROM commands WHERE state = 'expired'`);
    expect(rows.map(({ reason }) => reason)).toEqual(['no runner received it within 15 seconds']);
  });

  it('is no sign of life of its agent', async () => {
    const before = await agent();
    await write((transaction) =>
      queueCommand(transaction, {
        id: 'c1',
        agentId: 'a1',
        sessionId: 's1',
        type: 'task.stop',
        body: { taskId: 't1' },
        now: T0 + 60_000,
      }),
    );
    expect((await agent())?.lastSeenAt).toBe(before?.lastSeenAt);
    expect((await readAgent(unscoped(target.database), 'a1'))?.producers.map(({ id }) => id)).toEqual(['p1']);
  });
});
