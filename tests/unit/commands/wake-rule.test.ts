import type { WakeRule } from '@interlude/protocol/commands';
import { COMMAND_EXPIRY_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { claimCommands } from '@/lib/server/commands/command-stream';
import { putWakeRule, renewWakeRules } from '@/lib/server/commands/desired-state';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { acknowledge } from '@/lib/server/commands/settle-command';
import { readSession } from '@/lib/server/queries/read-sessions';
import { type InProcessTarget, ingest, inProcessTarget, marker, record } from '../../support/ingest-target';

/** Wake rules, with an injected clock. */
let target: InProcessTarget;
let now = 10_000;
beforeEach(async () => {
  now = 10_000;
  target = await inProcessTarget(() => now);
  await ingest(target, [marker(1)]);
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const set = (when: WakeRule, sessionId = 's1') =>
  putWakeRule({ ids: { sessionId }, body: { when } } as Parameters<typeof putWakeRule>[0], target.context);
const ruleNow = async () => (await readSession(unscoped(target.database), 's1'))?.session.wakeRule;
/** Connects a runner's process and claims its commands. */
const connect = async (id: string) => {
  const runner = { id, startedAt: now };
  const streamId = crypto.randomUUID();
  return write(async (transaction) => {
    await connectRunner(transaction, 'a1', runner, streamId, now);
    await renewWakeRules(transaction, 'a1', now);
    const claimed = await claimCommands(transaction, { agentId: 'a1', runner, streamId, after: 0, now });
    return claimed.kind === 'claimed' ? claimed.commands.map(({ command }) => command) : [];
  });
};
const answer = (commandId: string, state: 'done' | 'failed') =>
  write((transaction) => acknowledge(transaction, 'a1', commandId, { state, reason: 'not here' }, null, now));
const pass = async (ms: number) => {
  now += ms;
  await target.context.commands.sweep();
};

describe('a wake rule', () => {
  it('is null until it is set, then belongs to the session', async () => {
    expect(await ruleNow()).toBeNull();
    await set('command-ended');
    expect(await ruleNow()).toBe('command-ended');
    await set('never');
    expect(await ruleNow()).toBe('never');
  });

  it('is sent again when its command expired while the runner was away', async () => {
    await set('command-ended');
    await pass(COMMAND_EXPIRY_MS + 1);
    expect(await ruleNow()).toBe('command-ended');
    const [command, ...others] = await connect('r1');
    expect([command?.type, command?.body, others]).toEqual(['wake-rule.set', { when: 'command-ended' }, []]);
    await answer(command?.id ?? '', 'done');
    expect(await connect('r2')).toEqual([]);
    expect(await ruleNow()).toBe('command-ended');
  });

  it('is sent again for every session, in batches', async () => {
    const ids = Array.from({ length: 45 }, (_, index) => `many-${index}`);
    const events = ids.map((sessionId, index) =>
      record(index + 1, { agentId: 'a2', sessionId, event: { type: 'CUSTOM', name: 'x', value: index } }),
    );
    await ingest(target, events, 1, 'p2');
    for (const id of ids) await set('command-ended', id);
    await pass(COMMAND_EXPIRY_MS + 1);
    const goes: boolean[] = [];
    do goes.push(await write((transaction) => renewWakeRules(transaction, 'a2', now)));
    while (goes.at(-1));
    expect(goes).toEqual([true, true, false]);
    const { rows } = await target.database.reader.execute(
      "SELECT count(DISTINCT session_id) AS n FROM commands WHERE type = 'wake-rule.set' AND state = 'queued'",
    );
    expect(Number(rows[0]?.n)).toBe(ids.length);
  });

  it('is dropped when the runner refuses it, unless a newer one was set', async () => {
    const first = await set('command-ended');
    const second = await set('never');
    await answer(first.commandId, 'failed');
    expect(await ruleNow()).toBe('never');
    await answer(second.commandId, 'failed');
    expect(await ruleNow()).toBeNull();
  });

  it('reuses an open command for the same rule only if it is the newest', async () => {
    const first = await set('command-ended');
    expect((await set('command-ended')).commandId).toBe(first.commandId);
    await set('never');
    const again = await set('command-ended');
    expect(again.commandId).not.toBe(first.commandId);
    expect((await connect('r1')).map(({ body }) => body)).toEqual([
      { when: 'command-ended' },
      { when: 'never' },
      { when: 'command-ended' },
    ]);
  });
});
