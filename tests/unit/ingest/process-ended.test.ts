import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

const T0 = 1_795_170_000_000;
const KILLED = { process: { state: 'exited', pid: 7, exitCode: null, signal: 'SIGKILL' } };

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

const says = (event: object) => ingest(target, [record(++seq, { event })]);
const custom = (name: string, value: object) => says({ type: 'CUSTOM', name, value });
const reports = (status: object) =>
  ingest(target, [record(++seq, { kind: 'status', sessionId: 's1', status, event: undefined })]);
const ends = (value: object = { signal: 'SIGKILL', reason: 'killed by SIGKILL' }) => custom('session:ended', value);
async function works(): Promise<void> {
  await says({ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' });
  await custom('task:started', { task_id: 'b1' });
  await custom('request:opened', { request_id: 'q1', tool_name: 'Bash', input: {}, expires_at: T0 + 60_000 });
}
const session = async () => (await readSession(unscoped(target.database), 's1'))?.session;
const turns = async () =>
  (await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 }))?.turns ?? [];
const lines = async () =>
  (await turns()).flatMap(({ items }) => items).flatMap((item) => (item.kind === 'notice' ? [item.text] : []));

describe('a status record that reports the end of the process', () => {
  it('ends the turn, the tasks and the requests that are open', async () => {
    await works();
    now += 1_000;
    await reports(KILLED);
    expect(await session()).toMatchObject({
      state: 'exited',
      stateReason: 'killed by SIGKILL',
      openTurnId: null,
      runningTaskCount: 0,
      pendingRequestCount: 0,
    });
    expect((await turns()).map(({ state }) => state)).toEqual(['interrupted', 'finished']);
    const [task] = (await readTasks(unscoped(target.database), 's1'))?.tasks ?? [];
    expect(task).toMatchObject({ status: 'lost', error: expect.stringMatching(/^The agent ended/) });
    expect(task).not.toHaveProperty('presumed');
    const { items } = await readInbox(unscoped(target.database), { after: null, limit: 10 });
    expect(items.map(({ kind }) => kind)).toEqual(['failure']);
  });

  it.each(['before', 'after'])('is one transcript line together with an end reported %s', async (when) => {
    await works();
    if (when === 'before') await ends();
    await reports(KILLED);
    await reports({ ...KILLED, model: 'x' });
    if (when === 'after') await ends();
    expect(await lines()).toHaveLength(1);
    expect(await session()).toMatchObject({ state: 'exited' });
  });

  it('is the same failure as the end that is reported after it', async () => {
    await works();
    await reports(KILLED);
    const since = (await session())?.stateSince;
    now += 5_000;
    await ends();
    expect(await session()).toMatchObject({ stateSince: since, stateReason: 'killed by SIGKILL' });
  });

  it('counts as another end once the agent has run again', async () => {
    await works();
    await reports(KILLED);
    await reports({ process: { state: 'running', pid: 8, exitCode: null }, openTurnId: null });
    await custom('task:started', { task_id: 'b2' });
    await reports(KILLED);
    expect(await lines()).toHaveLength(2);
    expect(await session()).toMatchObject({ state: 'exited', runningTaskCount: 0 });
    await says({ type: 'RUN_STARTED', threadId: 's1', runId: 'r2' });
    expect(await session()).toMatchObject({ state: 'working' });
    await ends();
    expect(await lines()).toHaveLength(3);
  });

  it('ends nothing when it overtakes other records of its outbox', async () => {
    await says({ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' });
    await reports({ ...KILLED, outbox: { depth: 3, oldestAgeMs: 60_000, poisoned: 0, lost: 0 } });
    await says({ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', role: 'assistant', delta: 'Done.' });
    await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' });
    await ends();
    expect((await turns()).map(({ id, state }) => [id.split(':')[0], state])).toEqual([
      ['r1', 'finished'],
      ['none', 'finished'],
    ]);
    expect(await lines()).toHaveLength(1);
  });
});

it('a reported end stays when the last record of its runner only lists other work than the previous one', async () => {
  const there = { process: { state: 'running', pid: 7, exitCode: null }, openTurnId: null, requests: [] };
  await reports({ ...there, tasks: [{ id: 'b1', description: 'x' }] });
  await custom('task:started', { task_id: 'b1' });
  await ends({ reason: 'it was closed' });
  await reports({ ...there, tasks: [] });
  expect(await session()).toMatchObject({ state: 'exited', stateReason: 'it was closed' });
});

it('an ended request is shown as expired in every state of its session', async () => {
  await custom('request:opened', { request_id: 'q1', tool_name: 'Bash', input: {}, expires_at: T0 + 60_000 });
  await target.database.writes.run((transaction) => transaction.execute("UPDATE sessions SET state = 'exited'"));
  const hub = new CommandHub({ database: target.database, now: () => now, steady: () => now });
  await hub.sweep();
  now += 3_600_000;
  await hub.sweep();
  expect(await session()).toMatchObject({ pendingRequestCount: 0 });
});
