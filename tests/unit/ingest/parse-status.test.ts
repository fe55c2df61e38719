import { SILENT_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Work that its runner no longer lists because the record of its end was lost. */
const T0 = 1_795_170_000_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
  await target.database.writes.run((transaction) =>
    connectRunner(transaction, 'a1', { id: 'r', startedAt: 1 }, 'one', now + 1e9),
  );
});
afterEach(() => target.close());

const event = (type: string, more: object = {}) => record(++seq, { event: { type, threadId: 's1', ...more } });
const custom = (name: string, value: object, sessionId = 's1') =>
  record(++seq, { sessionId, event: { type: 'CUSTOM', name, value } });
const status = (lists: object, sessionId = 's1') =>
  record(++seq, {
    kind: 'status',
    sessionId,
    status: { kind: 'claude', openTurnId: null, ...lists },
    event: undefined,
  });
const lost = () => record(++seq, { kind: 'lost', event: undefined, lost: { count: 3, reason: 'outbox-full' } });
const send = (...records: unknown[]) => ingest(target, records);

const task = (id: string, more: object = {}) => custom('task:started', { task_id: id, description: 'sleep', ...more });
const asks = (id: string) => custom('request:opened', { request_id: id, tool_name: 'Bash', input: { command: 'ls' } });
const listed = (...ids: string[]) => ids.map((id) => ({ id, description: id }));

const session = async (id = 's1') => (await readSession(unscoped(target.database), id))?.session;
const tasks = async (id = 's1') => (await readTasks(unscoped(target.database), id))?.tasks ?? [];
const statuses = async () => (await tasks()).map(({ status }) => status);
const items = async () => {
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  return page?.turns.flatMap((turn) => turn.items) ?? [];
};
const runningTasks = async () =>
  (await readAgents(unscoped(target.database), { after: null, limit: 1, words: [] })).agents[0]?.runningTaskCount;

describe('unlisted work', () => {
  it('is ended: the task is lost, the request resolved as unknown', async () => {
    await send(event('RUN_STARTED', { runId: 'r1' }), task('b1'), asks('q1'), lost());
    expect(await session()).toMatchObject({ state: 'needs-input', runningTaskCount: 1 });
    now += 10_000;
    await send(status({ tasks: [], requests: [] }));
    expect(await session()).toMatchObject({ state: 'idle', runningTaskCount: 0, pendingRequestCount: 0 });
    expect(await runningTasks()).toBe(0);
    const [ended] = await tasks();
    expect(ended).toMatchObject({ status: 'lost', presumed: 'unlisted' });
    expect(ended?.error).toBe('The runner no longer lists this task, and no result was reported.');
    expect(await items()).toContainEqual(expect.objectContaining({ kind: 'task', phase: 'lost' }));
    expect(await items()).toContainEqual(expect.objectContaining({ kind: 'request', outcome: 'unknown' }));
  });

  it('stays open when a record lists it, or has no list', async () => {
    await send(task('b1'), asks('q1'));
    await send(status({}), status({ tasks: listed('b1'), requests: ['q1'] }), status({ tasks: 'none', requests: 7 }));
    expect(await session()).toMatchObject({ state: 'needs-input', runningTaskCount: 1, pendingRequestCount: 1 });
    await send(status({ tasks: listed('b1') }));
    expect(await session()).toMatchObject({ pendingRequestCount: 1 });
  });

  it('accepts an end reported later, and runs again once a record lists it', async () => {
    await send(task('b1'), task('b2'), task('b3'));
    await send(status({ tasks: listed('b3') }));
    expect(await statuses()).toEqual(['lost', 'lost', 'running']);
    await send(custom('task:completed', { task_id: 'b1', status: 'failed', exit_code: 3 }));
    await send(status({ tasks: listed('b2', 'b3') }));
    expect(await statuses()).toEqual(['failed', 'running', 'running']);
    const [first, second] = await tasks();
    expect(first).toMatchObject({ error: null, exitCode: 3 });
    expect(first).not.toHaveProperty('presumed');
    expect(second).toMatchObject({ error: null, endedAt: null });
    expect(second).not.toHaveProperty('presumed');
    expect(await session()).toMatchObject({ runningTaskCount: 2 });
  });

  it('is checked again when work started since, even if the record repeats the previous one', async () => {
    await send(status({ tasks: [], requests: [] }), task('b1'), asks('q1'));
    await send(status({ tasks: [], requests: [] }));
    expect(await session()).toMatchObject({ runningTaskCount: 0, pendingRequestCount: 0 });
  });

  it('excludes work that started after the record, and work of another session', async () => {
    await send(task('b1'), status({ tasks: [], requests: [] }, 's2'));
    await send(status({ tasks: listed('b1'), requests: [] }), task('b2'), asks('q1'));
    expect(await session()).toMatchObject({ runningTaskCount: 2, pendingRequestCount: 1 });
  });

  it('excludes a request that is derived from the agent’s events', async () => {
    const interrupts = [{ id: 'i1', reason: 'confirm', message: 'Sure?' }];
    await send(event('RUN_STARTED', { runId: 'r1' }));
    await send(event('RUN_FINISHED', { runId: 'r1', outcome: { type: 'interrupt', interrupts } }));
    await send(status({ tasks: [], requests: [] }));
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
  });

  it('excludes a task that another session reported', async () => {
    await send(task('b1'), custom('task:progress', { task_id: 'b1' }, 's2'));
    await send(custom('task:completed', { task_id: 'b1', status: 'completed' }, 's2'));
    await send(status({ tasks: [], requests: [] }));
    expect(await statuses()).toEqual(['completed']);
  });

  it('is not ended by a record that overtakes others in its outbox', async () => {
    await send(task('b1'), asks('q1'));
    const outbox = { depth: 9, oldestAgeMs: 60_000, poisoned: 0, lost: 0 };
    await send(status({ tasks: [], requests: [], outbox }));
    expect(await session()).toMatchObject({ runningTaskCount: 1, pendingRequestCount: 1 });
    await send(status({ tasks: [], requests: [], outbox: { ...outbox, depth: 0, oldestAgeMs: null } }));
    expect(await session()).toMatchObject({ runningTaskCount: 0, pendingRequestCount: 0 });
  });

  it('can be requested again by its agent', async () => {
    await send(asks('q1'), status({ requests: [] }));
    expect(await session()).toMatchObject({ pendingRequestCount: 0 });
    await send(asks('q1'));
    expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
  });

  it('is ended the same way however requests split the records', async () => {
    const days = [
      () => [event('RUN_STARTED', { runId: 'r1' }), task('b1'), task('b2', { run_id: 'x' }), asks('q1')],
      () => [status({ tasks: listed('b2'), requests: [] }), task('b3'), status({ tasks: listed('b1', 'b3') })],
      () => [custom('task:completed', { task_id: 'b2', status: 'completed' }), status({ tasks: [], requests: [] })],
    ];
    const whole = days.flatMap((day) => day());
    const results: unknown[] = [];
    for (const size of [whole.length, 3, 1]) {
      await target.close();
      target = await inProcessTarget(() => now);
      for (let index = 0; index < whole.length; index += size) await send(...whole.slice(index, index + size));
      const { updatedPosition: _, ...summary } = (await session()) ?? {};
      const ends = (await tasks()).map(({ id, status, presumed, error }) => ({ id, status, presumed, error }));
      const shown = (await items()).map((item) => [item.kind, item.id, 'phase' in item ? item.phase : null]);
      results.push({ state: summary, ends, shown });
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });

  it('is reopened by the next record that lists it, however requests split the records', async () => {
    for (const size of [1, 3]) {
      await target.close();
      seq = 0;
      target = await inProcessTarget(() => now);
      const records = [
        asks('q1'),
        status({ requests: [] }),
        status({ requests: ['q1'] }),
        status({ requests: ['q1'] }),
      ];
      for (let index = 0; index < records.length; index += size) await send(...records.slice(index, index + size));
      expect(await session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
    }
  });

  it('leaves the end of an earlier run unchanged when its id is used again', async () => {
    await send(task('b1', { run_id: 'x' }), status({ tasks: [] }), task('b1', { run_id: 'y' }));
    await send(status({ tasks: listed('b1') }));
    expect(await statuses()).toEqual(['lost', 'running']);
  });

  it('stays lost when a silent session sends records again without it', async () => {
    await send(task('b1'), status({ tasks: listed('b1') }));
    now += SILENT_MS + 1_000;
    await new CommandHub({ database: target.database, now: () => now, steady: () => now }).sweep();
    await send(status({ tasks: [] }));
    expect(await statuses()).toEqual(['lost']);
    expect(await session()).toMatchObject({ runningTaskCount: 0 });
  });

  it('can be marked by the server only', async () => {
    const forged = { type: 'CUSTOM', name: 'task:completed', value: { task_id: 'b1', status: 'lost' } };
    await send(task('b1'), record(++seq, { event: { ...forged, metadata: { interlude: { presumed: true } } } }));
    expect((await tasks())[0]).not.toHaveProperty('presumed');
  });
});
