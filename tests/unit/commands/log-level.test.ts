import { COMMAND_EXPIRY_MS, COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { claimCommands } from '@/lib/server/commands/command-stream';
import { renewLogLevel, requestLogLevel } from '@/lib/server/commands/desired-state';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { acknowledge } from '@/lib/server/commands/settle-command';
import { readAgent } from '@/lib/server/queries/read-agents';
import { type InProcessTarget, ingest, inProcessTarget, marker } from '../../support/ingest-target';

/** Desired log levels, with an injected clock. */
const T0 = 10_000;
const TTL_SECONDS = 15 * 60;

let target: InProcessTarget;
let now = T0;
beforeEach(async () => {
  now = T0;
  target = await inProcessTarget(() => now);
  await ingest(target, [marker(1)]);
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const wish = (level: 'debug' | 'warn' | null, ttlSeconds: number | null = level === 'debug' ? TTL_SECONDS : null) =>
  write((transaction) => requestLogLevel(transaction, { agentId: 'a1', level, ttlSeconds, by: 'operator' }, now));
/** Connects a runner's process and claims its commands. */
const connect = async (id: string) => {
  const runner = { id, startedAt: now };
  const streamId = crypto.randomUUID();
  return write(async (transaction) => {
    await connectRunner(transaction, 'a1', runner, streamId, now);
    await renewLogLevel(transaction, 'a1', id, now);
    const claimed = await claimCommands(transaction, { agentId: 'a1', runner, streamId, after: 0, now });
    return claimed.kind === 'claimed' ? claimed.commands.map(({ command }) => command) : [];
  });
};
const done = (commandId: string) =>
  write((transaction) => acknowledge(transaction, 'a1', commandId, { state: 'done' }, null, now));
const refuse = (commandId: string) =>
  write((transaction) => acknowledge(transaction, 'a1', commandId, { state: 'failed', reason: 'not here' }, null, now));
const pass = async (ms: number) => {
  now += ms;
  await target.context.commands.sweep();
};
const desired = async () => (await readAgent(unscoped(target.database), 'a1'))?.agent.logLevel.desired;

describe('a log level requested while the agent is away', () => {
  it('is sent on reconnect with the time left, after its command has expired', async () => {
    await wish('debug');
    await pass(COMMAND_EXPIRY_MS + 1);
    expect(await desired()).toMatchObject({ level: 'debug', state: 'requested' });
    const [command, ...others] = await connect('r1');
    expect(others).toEqual([]);
    expect(command?.body).toMatchObject({ level: 'debug', ttlSeconds: TTL_SECONDS - COMMAND_EXPIRY_MS / 1_000 });
    await done(command?.id ?? '');
    expect(await desired()).toMatchObject({ state: 'confirmed', requestedAt: T0 });
  });

  it('is sent after any time when it has no time limit', async () => {
    await wish('warn');
    await pass(30 * 24 * 3_600_000);
    const [command] = await connect('r1');
    expect(command?.body).toMatchObject({ level: 'warn' });
    expect(command?.body).not.toHaveProperty('ttlSeconds');
  });

  it('is replaced by the default once it has expired', async () => {
    const standing = await wish('warn');
    await connect('r1');
    await done(standing.commandId);
    await wish('debug', 60);
    await pass(60_000);
    expect(await desired()).toMatchObject({ level: null, requestedBy: 'time-limit', state: 'requested' });
    const [command, ...others] = await connect('r1');
    expect(others).toEqual([]);
    expect(command?.body).toMatchObject({ level: null, by: 'time-limit' });
    await done(command?.id ?? '');
    expect(await desired()).toBeNull();
  });

  it('is sent again with less time when the runner never answered', async () => {
    await wish('debug');
    const [first] = await connect('r1');
    await pass(COMMAND_LEASE_MS + 1);
    const [again] = await connect('r1');
    expect(again?.id).toBe(first?.id);
    expect(again?.body).toMatchObject({ ttlSeconds: TTL_SECONDS - 60 });
  });

  it('expires by the server’s clock across a restart', async () => {
    const { commandId } = await wish('debug');
    await connect('r1');
    await done(commandId);
    target.context.commands.close();
    now += TTL_SECONDS * 1_000;
    await target.restart();
    await target.context.commands.sweep();
    expect(await desired()).toBeNull();
  });
});

describe('a confirmed log level', () => {
  it('is sent to the next process as the same request, not to the one that confirmed it', async () => {
    const { commandId } = await wish('warn');
    await connect('r1');
    await done(commandId);
    expect(await connect('r1')).toEqual([]);
    const [command] = await connect('r2');
    expect(command?.id).not.toBe(commandId);
    expect(command?.body).toMatchObject({ level: 'warn', requestId: commandId });
    expect(await desired()).toMatchObject({ state: 'requested', requestedAt: T0 });
    await done(command?.id ?? '');
    expect(await desired()).toMatchObject({ state: 'confirmed' });
    const [third] = await connect('r3');
    expect(third?.body).toMatchObject({ requestId: commandId });
  });

  it('stays confirmed after later acknowledgements', async () => {
    const { commandId } = await wish('warn');
    await connect('r1');
    await done(commandId);
    await refuse(commandId);
    expect(await desired()).toMatchObject({ state: 'confirmed' });
  });
});

describe('a refused log level', () => {
  it('is sent again to the next process only', async () => {
    const { commandId } = await wish('debug');
    await connect('r1');
    await refuse(commandId);
    expect(await desired()).toMatchObject({ state: 'refused', reason: 'not here' });
    expect(await connect('r1')).toEqual([]);
    const [command] = await connect('r2');
    expect(await desired()).toMatchObject({ state: 'requested', reason: null });
    await done(command?.id ?? '');
    expect(await desired()).toMatchObject({ state: 'confirmed' });
  });
});

describe('a superseded log level', () => {
  it('is never sent after its successor, even when its lease ran out', async () => {
    const first = await wish('debug');
    await connect('r1');
    const second = await wish('warn');
    await pass(COMMAND_LEASE_MS + 1);
    expect((await connect('r1')).map(({ id }) => id)).toEqual([second.commandId]);
    await done(first.commandId);
    expect(await desired()).toMatchObject({ level: 'warn', state: 'requested' });
  });

  it('is not confirmed by an answer that arrives after it expired', async () => {
    const first = await wish('warn');
    await connect('r1');
    await pass(COMMAND_EXPIRY_MS + 1);
    await wish('debug');
    await done(first.commandId);
    expect(await desired()).toMatchObject({ level: 'debug', state: 'requested' });
  });

  it('does not affect the newer one’s expiry', async () => {
    await wish('debug', 60);
    await wish('warn');
    await pass(61_000);
    expect(await desired()).toMatchObject({ level: 'warn', expiresAt: null });
  });
});
