import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { stateAt } from '@interlude/protocol/projections/resolve-state';
import { sendingTo } from '@interlude/protocol/sending';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner } from '@/lib/server/commands/runner-connection';
import { postMessage } from '@/lib/server/commands/session-commands';
import { acknowledge } from '@/lib/server/commands/settle-command';
import { readAgent } from '@/lib/server/queries/read-agents';
import { readSession } from '@/lib/server/queries/read-sessions';
import { ownerContext } from '@/tests/support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** The composer predicts what happens to a message; the server answers the same. */
const RUNNER = { id: 'r', startedAt: 1 };

let now: number;
let seq: number;
let target: InProcessTarget;
let hub: CommandHub;
beforeEach(async () => {
  now = 1_795_170_000_000;
  seq = 0;
  target = await inProcessTarget(() => now);
  hub = new CommandHub({ database: target.database, now: () => now, steady: () => now });
});
afterEach(() => target.close());

const tell = (more: Record<string, unknown>) => ingest(target, [record(++seq, more)]);
const say = (event: AgUiEvent) => tell({ event });
const custom = (name: string, value: object = {}) => say({ type: 'CUSTOM', name, value });
const reports = (status: object) => tell({ kind: 'status', event: undefined, status });
const starts = () => say({ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' });
const finishes = () => say({ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' });
const works = async () => {
  await starts();
  await finishes();
};

const send = (clientId: string, text = 'Hi') =>
  postMessage(
    { ids: { sessionId: 's1' }, body: { text, clientId }, request: new Request('http://localhost'), ...ownerContext },
    { ...target.context, commands: hub },
  );

/** The composer's prediction from the rows of a page. */
async function composer() {
  const session = (await readSession(unscoped(target.database), 's1'))?.session;
  const agent = (await readAgent(unscoped(target.database), 'a1'))?.agent ?? null;
  if (session === undefined) throw new Error('the session is there');
  const shown = stateAt(session, now);
  return { state: shown.state, sending: sendingTo(shown, agent) };
}

const STATES: [string, string, string, () => Promise<unknown>][] = [
  ['is starting', 'starting', 'queued', () => custom('session:started')],
  ['works', 'working', 'queued', starts],
  ['compacts', 'working', 'queued', () => starts().then(() => reports({ state: 'compacting' }))],
  ['works, and was just written to', 'working', 'queued', () => starts().then(() => send('c0'))],
  ['is at rest, and was just written to', 'working', 'allowed', () => works().then(() => send('c0'))],
  [
    'waits on its tasks',
    'waiting-on-background',
    'allowed',
    async () => {
      await starts();
      await custom('task:started', { task_id: 't', description: 'sleep' });
      await finishes();
    },
  ],
  [
    'waits for an answer',
    'needs-input',
    'queued',
    () => starts().then(() => custom('request:opened', { request_id: 'q', title: 'Run?' })),
  ],
  ['is idle', 'idle', 'allowed', works],
  ['is complete', 'complete', 'allowed', () => works().then(() => reports({ state: 'complete' }))],
  ['has failed', 'failed', 'allowed', () => starts().then(() => say({ type: 'RUN_ERROR', message: 'x', runId: 'r1' }))],
  [
    'told nothing since it began',
    'unknown',
    'warned',
    async () => {
      await custom('session:started');
      now += 60_000;
    },
  ],
];

describe('a message to a session', () => {
  beforeEach(() => target.database.writes.run((tx) => connectRunner(tx, 'a1', RUNNER, 'one', now)));

  it.each(STATES)('that %s is answered with the composer’s wording, also when repeated', async (_, state, kind, to) => {
    await to();
    const before = await composer();
    expect(before).toMatchObject({ state, sending: { kind } });
    const response = await send('c1');
    expect(response.sending).toEqual(before.sending);
    await starts();
    expect((await send('c1')).sending).toEqual(before.sending);
    await custom('session:ended', { exitCode: 0 });
    now += 1_000;
    expect(await send('c1')).toMatchObject({ messageId: response.messageId, sending: before.sending });
    await expect(send('c1', 'Other')).rejects.toMatchObject({ details: { reason: 'client_id_reused' } });
  });

  it('is refused with the composer’s reason when the session has ended', async () => {
    now -= 1_000;
    await works();
    await custom('session:ended', { exitCode: 0 });
    now += 2_000;
    await target.database.writes.run((tx) =>
      tx.execute("UPDATE agents SET body = json_set(body, '$.connectedSince', 1)"),
    );
    const { sending } = await composer();
    await expect(send('c1')).rejects.toMatchObject({ code: 'conflict', message: sending.reason });
    expect((await target.database.reader.execute('SELECT * FROM commands')).rows).toEqual([]);
  });
});

describe('a message to an agent without a runner', () => {
  const session = async () => (await composer()).state;
  const acknowledges = (id: string) =>
    target.database.writes.run((tx) => acknowledge(tx, 'a1', id, { state: 'delivered' }, RUNNER, now));

  it('never shows the agent as working while it waits', async () => {
    await works();
    expect(await send('c1')).toMatchObject({ delivery: 'queued', sending: { kind: 'queued' } });
    expect(await session()).toBe('idle');
    now += 3_600_000;
    await hub.sweep();
    expect(await session()).toBe('idle');
  });

  it('is on its way once a runner has received it', async () => {
    await works();
    const { messageId } = await send('c1');
    await target.database.writes.run((tx) => connectRunner(tx, 'a1', RUNNER, 'one', now));
    expect(await session()).toBe('idle');
    await acknowledges(messageId);
    expect(await session()).toBe('working');
    now += 60_000;
    expect(await session()).toBe('idle');
  });

  it('is no longer on its way when a turn names it before its delivery', async () => {
    await works();
    const { messageId } = await send('c1');
    await target.database.writes.run((tx) => connectRunner(tx, 'a1', RUNNER, 'one', now));
    const interlude = { turn: 'user', userMessageIds: [messageId] };
    await say({ type: 'RUN_STARTED', threadId: 's1', runId: 'r2', metadata: { interlude } } as AgUiEvent);
    await say({ type: 'RUN_FINISHED', threadId: 's1', runId: 'r2' });
    await acknowledges(messageId);
    expect(await session()).toBe('idle');
  });
});
