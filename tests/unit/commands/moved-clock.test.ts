import {
  COMMAND_EXPIRY_MS,
  COMMAND_LEASE_MS,
  MESSAGE_EXPIRY_MS,
  RUNNER_AWAY_MS,
  RUNNER_GRACE_MS,
  WORK_REPORT_MS,
} from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { claimCommands } from '@/lib/server/commands/command-stream';
import { requestLogLevel } from '@/lib/server/commands/desired-state';
import { queueCommand } from '@/lib/server/commands/queue-command';
import {
  connectRunner,
  disconnectRunner,
  disconnectUnresponsive,
  renewRunners,
} from '@/lib/server/commands/runner-connection';
import { readAgent } from '@/lib/server/queries/read-agents';
import { readSession, readSessions } from '@/lib/server/queries/read-sessions';
import { AdjustableClocks } from '@/tests/support/clocks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Due work after the server's clock was moved. */
const DAY = 24 * 3_600_000;
const RUNNER = { id: 'r1', startedAt: 1_000 };

let clocks: AdjustableClocks;
let target: InProcessTarget;
let hub: CommandHub;
let seq = 0;
beforeEach(async () => {
  clocks = new AdjustableClocks();
  seq = 0;
  target = await inProcessTarget(clocks.now);
  starts();
  await says({ type: 'RUN_STARTED', threadId: 's1', runId: 't1' });
  await hub.sweep();
});
afterEach(() => target.close());

/** A restarted server does not know its earlier clock. */
function starts(): void {
  hub = new CommandHub({ database: target.database, now: clocks.now, steady: clocks.steady });
}
const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const says = (event: object, fields: object = {}) => ingest(target, [record(++seq, { event, ...fields })]);
const connect = (runner = RUNNER, streamId = 'one') =>
  write((transaction) => connectRunner(transaction, 'a1', runner, streamId, clocks.now()));
const leave = (streamId = 'one') => write((transaction) => disconnectRunner(transaction, 'a1', streamId, clocks.now()));
const asks = (type: 'message' | 'task.stop') =>
  write((transaction) => {
    const fields = { id: type, agentId: 'a1', sessionId: 's1', now: clocks.now() };
    if (type === 'task.stop') return queueCommand(transaction, { ...fields, type, body: { taskId: 't1' } });
    const body = { messageId: 'm1', text: 'hi', from: { kind: 'person' as const, id: 'p' } };
    return queueCommand(transaction, { ...fields, type, body });
  });
const claim = () =>
  write((transaction) =>
    claimCommands(transaction, {
      agentId: 'a1',
      runner: RUNNER,
      streamId: 'one',
      after: Number.MAX_SAFE_INTEGER,
      now: clocks.now(),
    }),
  );
const claimed = async () => {
  const outcome = await claim();
  return outcome.kind === 'claimed' ? outcome.commands.map(({ command }) => command.id) : outcome.kind;
};
const agent = async () => (await readAgent(unscoped(target.database), 'a1'))?.agent;
const session = async () => (await readSession(unscoped(target.database), 's1'))?.session;
async function stateOf(id: string): Promise<unknown> {
  const { rows } = await target.database.reader.execute({ sql: 'SELECT state FROM commands WHERE id = ?', args: [id] });
  return rows[0]?.state;
}
async function passes(ms: number): Promise<void> {
  clocks.goesBy(ms);
  await hub.sweep();
}

describe.each([
  ['back by a day', -DAY],
  ['ahead by a day', DAY],
  ['back by a year', -365 * DAY],
])('a clock that is moved %s', (_how, moved) => {
  it('keeps a runner that died with its server connected for one term at most', async () => {
    await connect();
    clocks.isMoved(moved);
    await hub.sweep();
    expect(await agent()).toMatchObject({ connection: 'connected' });
    await passes(RUNNER_AWAY_MS);
    expect(await agent()).toMatchObject({ connection: 'away' });
    await passes(RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'unknown' });
  });

  it('keeps it for one term also when the server restarts then', async () => {
    await connect();
    clocks.isMoved(moved);
    starts();
    await hub.sweep();
    await passes(RUNNER_AWAY_MS);
    await passes(RUNNER_GRACE_MS);
    expect(await agent()).toMatchObject({ connection: 'away' });
    expect(await session()).toMatchObject({ state: 'unknown' });
  });

  it.each(['while its server runs', 'while it does not'])(
    'ends the working state of a silent session in time, %s',
    async (when) => {
      await connect();
      const status = { report: { state: 'working' } };
      await ingest(target, [record(++seq, { kind: 'status', sessionId: 's1', status, event: undefined })]);
      await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 't1' });
      expect(await session()).toMatchObject({ state: 'working' });
      clocks.isMoved(moved);
      if (when !== 'while its server runs') starts();
      await hub.sweep();
      await passes(WORK_REPORT_MS);
      expect(await session()).toMatchObject({ state: 'idle' });
    },
  );

  it('marks a runner that left earlier exactly at the end of its grace', async () => {
    await connect();
    await leave();
    await passes(RUNNER_GRACE_MS - 1_000);
    clocks.isMoved(moved);
    await hub.sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    await passes(moved > 0 ? 1_000 : RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'unknown' });
  });

  it('orders records before and after the runner left by position', async () => {
    await connect();
    await says({ type: 'RUN_STARTED', threadId: 's2', runId: 't2' }, { sessionId: 's2' });
    await leave();
    clocks.isMoved(moved);
    await hub.sweep();
    clocks.goesBy(2_000);
    await says({ type: 'CUSTOM', name: 'still-here', value: 1 });
    await passes(RUNNER_GRACE_MS);
    const { sessions } = await readSessions(unscoped(target.database));
    const states = Object.fromEntries(sessions.map(({ id, state }) => [id, state]));
    expect(states).toEqual({ s1: 'working', s2: 'unknown' });
  });

  it('sends an unacknowledged command again after its lease, and expires none', async () => {
    await connect();
    await asks('message');
    await asks('task.stop');
    expect(await claimed()).toEqual(['message', 'task.stop']);
    clocks.isMoved(moved);
    await hub.sweep();
    expect(await claimed()).toEqual([]);
    await passes(COMMAND_LEASE_MS);
    expect(await claimed()).toEqual(['message', 'task.stop']);
  });

  it('expires an unclaimed command within one more term', async () => {
    await asks('task.stop');
    await asks('message');
    clocks.isMoved(moved);
    await hub.sweep();
    expect([await stateOf('task.stop'), await stateOf('message')]).toEqual(['queued', 'queued']);
    await passes(COMMAND_EXPIRY_MS);
    expect([await stateOf('task.stop'), await stateOf('message')]).toEqual(['expired', 'queued']);
    await passes(MESSAGE_EXPIRY_MS);
    expect(await stateOf('message')).toBe('expired');
  });

  it('keeps a log level for its requested time', async () => {
    await write((transaction) =>
      requestLogLevel(transaction, { agentId: 'a1', level: 'debug', ttlSeconds: 900, by: 'p' }, clocks.now()),
    );
    clocks.goesBy(100_000);
    clocks.isMoved(moved);
    await hub.sweep();
    const left = ((await agent())?.logLevel.desired?.expiresAt ?? 0) - clocks.now();
    expect(left).toBeGreaterThanOrEqual(800_000);
    expect(left).toBeLessThanOrEqual(900_000);
  });

  it('disconnects only a runner that misses its reports', async () => {
    await connect();
    const status = { runner: { id: RUNNER.id }, everyMs: 10_000 };
    await ingest(target, [record(++seq, { kind: 'status', event: undefined, status })]);
    clocks.isMoved(moved);
    await hub.sweep();
    const mute = () => write((transaction) => disconnectUnresponsive(transaction, ['one'], clocks.now()));
    expect(await mute()).toEqual([]);
    for (let second = 0; second < 21; second += 3) {
      clocks.goesBy(3_000);
      await write((transaction) => renewRunners(transaction, ['one'], clocks.now()));
      await hub.sweep();
    }
    expect(await mute()).toEqual(['one']);
  });

  it('leaves nothing behind once the clock is right again', async () => {
    await connect();
    await asks('message');
    clocks.isMoved(moved);
    await passes(60_000);
    clocks.isMoved(-moved);
    await hub.sweep();
    await passes(RUNNER_AWAY_MS);
    await passes(RUNNER_GRACE_MS);
    expect(await agent()).toMatchObject({ connection: 'away' });
    expect((await agent())?.lastSeenAt).toBeLessThanOrEqual(clocks.now());
    expect(await session()).toMatchObject({ state: 'unknown' });
    expect(await stateOf('message')).toBe('queued');
  });
});

describe('an unclaimed message', () => {
  const MINUTE = 60_000;
  /** A server that runs for a time, sweeping now and then. */
  async function runs(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += MINUTE) await passes(MINUTE);
  }

  it.each([
    ['seconds', 5_000],
    ['an hour', 60 * MINUTE],
  ])(
    'is not given up by a server that is started with its clock days ahead, set right %s later',
    async (_how, forMs) => {
      await asks('message');
      await connect();
      clocks.isMoved(8 * DAY);
      starts();
      for (let passed = 0; passed < forMs; passed += MINUTE) await passes(Math.min(MINUTE, forMs));
      expect(await stateOf('message')).toBe('queued');
      clocks.isMoved(-8 * DAY);
      await runs(20 * MINUTE);
      expect(await stateOf('message')).toBe('queued');
      await connect();
      expect(await claimed()).toEqual(['message']);
    },
  );

  it('expires on a server that was down for a week, after its clock ran for a day', async () => {
    await asks('message');
    clocks.goesBy(MESSAGE_EXPIRY_MS);
    starts();
    await runs(20 * MINUTE);
    expect(await stateOf('message')).toBe('queued');
    await hub.sweep();
    await passes(DAY);
    expect(await stateOf('message')).toBe('expired');
  });

  it('expires within minutes on a server that receives records', async () => {
    await asks('message');
    clocks.goesBy(MESSAGE_EXPIRY_MS);
    await says({ type: 'CUSTOM', name: 'x', value: 1 });
    starts();
    await runs(9 * MINUTE);
    expect(await stateOf('message')).toBe('queued');
    await runs(2 * MINUTE);
    expect(await stateOf('message')).toBe('expired');
  });
});

test('lists sessions by the server’s clock, not their agents’', async () => {
  clocks.goesBy(1_000);
  await says({ type: 'CUSTOM', name: 'x', value: 1 }, { sessionId: 'future', occurredAt: 8_640_000_000_000_000 });
  clocks.goesBy(1_000);
  await says({ type: 'CUSTOM', name: 'x', value: 1 }, { sessionId: 'past', occurredAt: 0 });
  clocks.goesBy(1_000);
  await says({ type: 'CUSTOM', name: 'x', value: 1 });
  expect((await readSessions(unscoped(target.database))).sessions.map(({ id }) => id)).toEqual([
    's1',
    'past',
    'future',
  ]);
});
