import type { SendMessage } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { clampDeadlines } from '@/lib/server/commands/clamp-deadlines';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { postMarks } from '@/lib/server/commands/mark-inbox';
import { undeliveredMs } from '@/lib/server/commands/overdue';
import { postMessage } from '@/lib/server/commands/session-commands';
import { acknowledge } from '@/lib/server/commands/settle-command';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readTask, readTasks } from '@/lib/server/queries/read-tasks';
import { ownerContext } from '@/tests/support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Results of background tasks that no turn takes up, with an injected clock. */
const T0 = 1_795_170_000_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

const says = (event: object) => ingest(target, [record(++seq, { event })]);
const starts = (runId: string, interlude: object = {}) =>
  says({ type: 'RUN_STARTED', threadId: 's1', runId, metadata: { interlude } });
const finishes = (runId: string, interlude: object = {}) =>
  says({ type: 'RUN_FINISHED', threadId: 's1', runId, metadata: { interlude } });
const task = (name: string, value: object = {}) =>
  says({ type: 'CUSTOM', name: `task:${name}`, value: { task_id: 'b1', description: 'npm test', ...value } });
/** A turn that leaves a task running. */
async function leavesTask(value: object = {}): Promise<void> {
  await starts('r1');
  await task('started', value);
  await finishes('r1');
}
const ends = (value: object = {}) => task('completed', { status: 'failed', exit_code: 3, ...value });
/** A new instance each time, as after a restart. */
async function passes(seconds: number, waitsMs?: number): Promise<void> {
  now += seconds * 1_000;
  const terms = waitsMs === undefined ? {} : { undeliveredMs: waitsMs };
  await new CommandHub({ database: target.database, now: () => now, steady: () => now, ...terms }).sweep();
}
const items = async () => (await readInbox(unscoped(target.database), { after: null, limit: 10 })).items;
const undelivered = async () => (await items()).filter(({ kind }) => kind === 'undelivered');
const tasks = async () => (await readTasks(unscoped(target.database), 's1'))?.tasks ?? [];
const send = (body: Omit<SendMessage, 'text'>) =>
  postMessage(
    {
      ids: { sessionId: 's1' },
      body: { text: 'It failed.', ...body },
      request: new Request('http://x'),
      ...ownerContext,
    },
    {
      ...target.context,
      commands: new CommandHub({ database: target.database, now: () => now, steady: () => now }),
    },
  );

describe('a task that ended while its agent was idle', () => {
  it('is in the inbox once when no turn takes up its result in time', async () => {
    await leavesTask();
    await passes(300);
    await ends();
    await passes(59);
    expect(await undelivered()).toEqual([]);
    await target.restart();
    await passes(1);
    const [item] = await undelivered();
    expect(item).toMatchObject({ title: 'npm test: failed, exit code 3', since: now, sessionId: 's1' });
    expect(item?.task).toEqual({ id: 'b1', runId: null, position: (await tasks())[0]?.position });
    expect(await tasks()).toMatchObject([{ isUndelivered: true, unansweredSince: now - 60_000 }]);
    await passes(60);
    expect((await undelivered())[0]?.updatedPosition).toBe(item?.updatedPosition);
  });

  it('waits for the configured time', async () => {
    await leavesTask();
    await ends();
    await passes(4, 5_000);
    expect(await undelivered()).toEqual([]);
    await passes(1, 5_000);
    expect(await undelivered()).toHaveLength(1);
  });

  it('is resolved by a later turn that names it as its cause', async () => {
    await leavesTask();
    await ends();
    await passes(60);
    await starts('r2', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['b1'] } });
    expect(await undelivered()).toEqual([]);
    const [answered] = await tasks();
    expect(answered?.answeredInTurnId).toBe('r2');
    expect([answered?.unansweredSince, answered?.isUndelivered]).toEqual([undefined, undefined]);
  });

  it('is not undelivered during a turn, nor after one that took it up', async () => {
    await leavesTask();
    await ends();
    await passes(5);
    await starts('r2', { turn: 'user' });
    await passes(600);
    expect(await undelivered()).toEqual([]);
    await finishes('r2', { foldedTaskIds: ['b1'] });
    await passes(600);
    expect(await undelivered()).toEqual([]);
  });

  it('is undelivered after a turn that did not take it up', async () => {
    await leavesTask();
    await ends();
    await starts('r2', { turn: 'user' });
    await passes(600);
    await finishes('r2');
    await passes(1);
    expect(await undelivered()).toHaveLength(1);
  });

  it('is resolved by a message that carries its result, until its delivery fails', async () => {
    await leavesTask();
    await ends();
    await passes(60);
    const { messageId } = await send({ clientId: 'c1', results: [{ taskId: 'b1' }] });
    expect(await undelivered()).toEqual([]);
    expect(await tasks()).toMatchObject([{ carriedBy: messageId }]);
    await target.database.writes.run((transaction) =>
      acknowledge(transaction, 'a1', messageId, { state: 'failed', reason: 'It does not listen.' }, null, now),
    );
    await passes(59);
    expect(await undelivered()).toEqual([]);
    await passes(1);
    expect(await undelivered()).toHaveLength(1);
    expect((await tasks())[0]?.carriedBy).toBeUndefined();
  });

  it('waits no longer when the clock is set back and the task changes', async () => {
    await leavesTask();
    await ends();
    now -= 3_600_000;
    await target.database.writes.run((transaction) => clampDeadlines(transaction, now, -3_600_000));
    await task('progress', { summary: 'It had failed before.' });
    await passes(60);
    expect(await undelivered()).toHaveLength(1);
  });

  it('is done once seen, and stays so', async () => {
    await leavesTask();
    await ends();
    await passes(60);
    const [{ id, updatedPosition }] = (await undelivered()) as [InboxItem];
    const body = { items: [{ id, updatedPosition }], mark: 'seen' as const };
    await postMarks({ ids: {}, body, request: new Request('http://x'), ...ownerContext }, target.context);
    expect(await undelivered()).toEqual([]);
    await task('progress', { summary: 'It had failed before.' });
    await passes(120);
    expect(await undelivered()).toEqual([]);
  });

  it('is back when it is marked unseen, while its result is undelivered', async () => {
    await leavesTask();
    await ends();
    await passes(60);
    const [before] = (await undelivered()) as [InboxItem];
    const mark = (item: InboxItem, mark: 'seen' | 'unseen') => {
      const body = { items: [{ id: item.id, updatedPosition: item.updatedPosition }], mark };
      return postMarks({ ids: {}, body, request: new Request('http://x'), ...ownerContext }, target.context);
    };
    const first = await mark(before, 'seen');
    const reopened = await mark(first.items[0] as InboxItem, 'unseen');
    expect(await undelivered()).toEqual([{ ...before, updatedPosition: reopened.items[0]?.updatedPosition }]);
    const second = await mark(reopened.items[0] as InboxItem, 'seen');
    await starts('r2', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['b1'] } });
    expect((await mark(second.items[0] as InboxItem, 'unseen')).changed).toEqual([before.id]);
    expect(await undelivered()).toEqual([]);
  });

  it('is still there once its session has exited', async () => {
    await leavesTask();
    await ends();
    await says({ type: 'CUSTOM', name: 'session:ended', value: { reason: 'quit' } });
    await passes(60);
    expect(await undelivered()).toHaveLength(1);
  });
});

describe('offers no wake for a task', () => {
  it.each([
    ['that ended in a turn', async () => ends().then(() => finishes('r1'))],
    ['that was stopped', async () => finishes('r1').then(() => ends({ status: 'stopped' }))],
    ['of another task', async () => finishes('r1').then(() => ends({ parent_task_id: 'b0' }))],
    [
      'that is lost with its agent',
      async () => finishes('r1').then(() => says({ type: 'CUSTOM', name: 'session:ended', value: {} })),
    ],
  ])('%s', async (_what, happens) => {
    await starts('r1');
    await task('started');
    await happens();
    await passes(600);
    expect(await undelivered()).toEqual([]);
  });
});

describe('a message that carries results', () => {
  it('carries the result of the meant run when the agent reuses an id', async () => {
    await leavesTask();
    await ends();
    await starts('r2', { turn: 'user' });
    await task('started', { description: 'again' });
    await finishes('r2');
    await passes(60);
    const [position = ''] = (await undelivered()).map((item) => item.task?.position);
    await send({ clientId: 'c1', results: [{ taskId: 'b1', position }] });
    expect(await undelivered()).toEqual([]);
    expect((await tasks()).map(({ carriedBy }) => carriedBy !== undefined)).toEqual([true, false]);
    const run = { runId: null, position: Number(position) };
    const told = await readTask(unscoped(target.database), 's1', 'b1', run);
    expect(told?.task).toMatchObject({ description: 'npm test', status: 'failed' });
  });

  it('is refused for a running or unknown task', async () => {
    await leavesTask();
    await expect(send({ clientId: 'c1', results: [{ taskId: 'b1' }] })).rejects.toMatchObject({ code: 'conflict' });
    await expect(send({ clientId: 'c2', results: [{ taskId: 'b2' }] })).rejects.toMatchObject({ code: 'not_found' });
  });
});

it('reads its time from the environment, and logs an invalid one', () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const set = (value: string) => undeliveredMs({ INTERLUDE_UNDELIVERED_SECONDS: value });
  expect([undeliveredMs({}), set(''), set('5'), set('600')]).toEqual([60_000, 60_000, 5_000, 600_000]);
  expect([set('0'), set('soon')]).toEqual([60_000, 60_000]);
  expect(said).toHaveBeenCalledTimes(2);
});
