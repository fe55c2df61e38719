import { RUNNER_AWAY_MS, RUNNER_GRACE_MS, SILENT_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { wholeSight } from '@/lib/server/access/sight';
import { CommandHub } from '@/lib/server/commands/command-hub';
import {
  connectRunner,
  disconnectRunner,
  disconnectUnresponsive,
  renewRunners,
} from '@/lib/server/commands/runner-connection';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** What becomes of a session when its runner goes, with the clock in hand. */
const T0 = 1_795_170_000_000;
const RUNNER = { id: 'r1', startedAt: 1_000 };
const AFTER = { id: 'r2', startedAt: 2_000 };
/** Invariant 8. */
const MOST_MS = 30_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(() => target.close());

const write = <T>(job: (transaction: WriteTransaction) => Promise<T>) => target.database.writes.run(job);
const hub = () => new CommandHub({ database: target.database, now: () => now, steady: () => now });
const sweep = () => hub().sweep();
async function sweepAt(at: number): Promise<void> {
  now = at;
  await sweep();
}
const connect = (runner = RUNNER, streamId = 'one') =>
  write((transaction) => connectRunner(transaction, 'a1', runner, streamId, now));
const leave = (streamId = 'one') => write((transaction) => disconnectRunner(transaction, 'a1', streamId, now));
const says = (event: object, sessionId = 's1') => ingest(target, [record(++seq, { event, sessionId })]);
const reports = (status: object, sessionId: string | undefined = 's1') =>
  ingest(target, [record(++seq, { kind: 'status', sessionId, status, event: undefined })]);
const turnStarts = (sessionId = 's1') =>
  says({ type: 'RUN_STARTED', threadId: sessionId, runId: `t${seq}` }, sessionId);
/** A runner with two sessions in mid-turn goes, and another process takes up the second of them 5 s later. */
async function succeeds(): Promise<void> {
  await connect();
  await turnStarts('s1');
  await turnStarts('s2');
  await leave();
  now += 5_000;
  await connect(AFTER, 'two');
  await reports({ kind: 'claude' }, 's2');
}
const session = async (id = 's1') => (await readSession(wholeSight(target.database), id))?.session;
const tasks = async () => (await readTasks(wholeSight(target.database), 's1'))?.tasks;
const runningTasks = async () =>
  (await readAgents(wholeSight(target.database), { after: null, limit: 1, words: [] })).agents[0]?.runningTaskCount;
const notices = async () => {
  const page = await readTranscript(wholeSight(target.database), 's1', { before: null, limit: 50 });
  return page?.turns.flatMap(({ items }) => items).flatMap((item) => (item.kind === 'notice' ? [item.code] : []));
};

describe('a runner that is killed in mid-turn', () => {
  it('leaves nothing that says working for more than 30 s', async () => {
    await connect();
    await turnStarts();
    now += 5_000;
    await leave();
    await sweepAt(T0 + 5_000 + RUNNER_GRACE_MS - 1);
    expect(await session()).toMatchObject({ state: 'working', away: null });
    await sweepAt(T0 + 5_000 + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({
      state: 'unknown',
      stateReason: 'its runner has gone in the middle of a turn',
      evidence: { rule: 3, source: 'connection', observedAt: T0, last: 'working' },
      away: { since: T0 + 5_000, lastHeardAt: T0, agentGoesOn: false },
    });
    expect(RUNNER_GRACE_MS).toBeLessThan(MOST_MS);
    expect(await notices()).toEqual(['runner-away']);
  });

  it('together with its server, likewise: the term runs out, then the grace', async () => {
    await connect();
    await turnStarts();
    await write((transaction) => renewRunners(transaction, ['one'], now));
    await target.restart();
    await sweepAt(T0 + RUNNER_AWAY_MS);
    expect(await session()).toMatchObject({ state: 'working' });
    await target.restart();
    await sweepAt(T0 + RUNNER_AWAY_MS + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { since: T0 + RUNNER_AWAY_MS } });
    expect(RUNNER_AWAY_MS + RUNNER_GRACE_MS).toBeLessThan(MOST_MS - 2_000);
  });

  it('together with one of two servers, within 15 s: the other one would have heard it', async () => {
    await connect();
    await turnStarts();
    const other = hub();
    for (now = T0; now < T0 + RUNNER_AWAY_MS; now += 1_000) await other.sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    await other.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', away: { since: T0 + RUNNER_AWAY_MS } });
    expect(RUNNER_AWAY_MS).toBeLessThan(15_000 - 2_000);
  });

  it('counts from its last record, where that came after its stream was renewed last', async () => {
    await connect();
    await turnStarts();
    const other = hub();
    for (now = T0; now < T0 + 8_000; now += 1_000) await other.sweep();
    await says({ type: 'CUSTOM', name: 'marker', value: 1 });
    for (; now < T0 + 8_000 + RUNNER_GRACE_MS; now += 1_000) await other.sweep();
    expect(await session()).toMatchObject({ state: 'working', away: null });
    await other.sweep();
    expect(await session()).toMatchObject({ state: 'unknown' });
  });

  it('is given its grace anew by the other server, if that was asleep meanwhile', async () => {
    await connect();
    await turnStarts();
    const other = hub();
    await other.sweep();
    now += 60_000;
    await other.sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    for (const end = now + RUNNER_GRACE_MS; now < end; now += 1_000) await other.sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    await other.sweep();
    expect(await session()).toMatchObject({ state: 'unknown' });
  });

  it('is given its grace anew by a server that was down itself', async () => {
    await connect();
    await turnStarts();
    await sweepAt(T0 + 3_600_000);
    expect(await session()).toMatchObject({ state: 'working' });
    now += RUNNER_GRACE_MS - 1;
    await connect(RUNNER, 'two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'working', away: null });
  });

  it('is told of once, by whichever server looks first', async () => {
    await connect();
    await turnStarts();
    await leave();
    now += RUNNER_GRACE_MS;
    await Promise.all([sweep(), sweep()]);
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await notices()).toEqual(['runner-away']);
  });

  it('counts where a task runs, too', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    const stateReason = 'its runner has gone while it waited for its tasks';
    expect(await session()).toMatchObject({ state: 'unknown', stateReason });
  });

  it('has its tasks lost within 30 s, with when and why, until the same process is back', async () => {
    await connect();
    await turnStarts();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 't0' });
    now += 5_000;
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    const since = new Date(T0 + 5_000).toISOString();
    const error = `Nothing has been heard of its runner since ${since}, and nothing told how it ended.`;
    expect(await tasks()).toMatchObject([{ status: 'lost', presumed: 'unheard', endedAt: T0 + 5_000, error }]);
    expect(await session()).toMatchObject({ state: 'unknown', evidence: { last: 'waiting-on-background' } });
    expect([(await session())?.runningTaskCount, await runningTasks()]).toEqual([0, 0]);
    await connect(RUNNER, 'two');
    expect(await tasks()).toMatchObject([{ status: 'running', error: null, endedAt: null }]);
    expect((await tasks())?.[0]).not.toHaveProperty('presumed');
    expect(await session()).toMatchObject({ state: 'waiting-on-background', runningTaskCount: 1 });
    expect(await notices()).toEqual(['runner-away', 'runner-back']);
  });

  it('has a task run again when its successor lists it, and keeps those lost that it does not', async () => {
    await connect();
    await reports({ tasks: [{ id: 'b1', description: 'x' }], requests: [] });
    for (const id of ['b1', 'b2']) await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: id } });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    await connect(AFTER, 'two');
    await reports({ tasks: [{ id: 'b1', description: 'x' }], requests: [] });
    expect((await tasks())?.map(({ status }) => status)).toEqual(['running', 'lost']);
    expect(await session()).toMatchObject({ runningTaskCount: 1 });
  });

  it('has its tasks go on where the agent is no child of its runner', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await reports({ kind: 'hooks', agentGoesOn: true });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await tasks()).toMatchObject([{ status: 'running' }]);
  });

  it('leaves a request to be answered, and says that its runner has gone', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q' } });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'needs-input', away: { since: T0 } });
  });

  it('is told in no transcript where nothing was under way, and not at all where the end was told', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'marker', value: 1 }, 's1');
    await turnStarts('s2');
    await says({ type: 'CUSTOM', name: 'session:ended', value: { reason: 'killed', exitCode: 137 } }, 's2');
    await turnStarts('s3');
    await says({ type: 'RUN_ERROR', message: 'No credit' }, 's3');
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    expect(await notices()).toEqual([]);
    expect(await session('s2')).toMatchObject({ state: 'exited', stateReason: 'killed', away: null });
    expect(await session('s3')).toMatchObject({
      state: 'unknown',
      stateReason: 'its runner has gone',
      evidence: { last: 'failed' },
    });
  });

  it('is unseen and not dead where the agent is no child of its runner', async () => {
    await connect();
    await turnStarts();
    await reports({ kind: 'hooks', agentGoesOn: true });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { agentGoesOn: true } });
  });
});

describe('an agent that never had a stream', () => {
  const known = (id?: string) => session(id);

  it('is unknown once it was silent for two minutes, and says what it was', async () => {
    await turnStarts();
    await sweepAt(T0 + SILENT_MS - 1);
    expect(await known()).toMatchObject({ state: 'working', away: null });
    await sweepAt(T0 + SILENT_MS);
    expect(await known()).toMatchObject({
      state: 'unknown',
      stateReason: 'it has fallen silent in the middle of a turn',
      evidence: { rule: 3, source: 'connection', observedAt: T0, last: 'working' },
      away: { since: T0, lastHeardAt: T0, agentGoesOn: false, isSilent: true },
    });
    expect(await notices()).toEqual(['runner-away']);
    await sweepAt(T0 + 2 * SILENT_MS);
    expect(await notices()).toEqual(['runner-away']);
  });

  it('has its tasks lost as long as it is silent, and an end that it tells then counts', async () => {
    for (const id of ['b1', 'b2']) await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: id } });
    await sweepAt(T0 + SILENT_MS);
    expect((await tasks())?.map(({ status, presumed }) => [status, presumed])).toEqual([
      ['lost', 'unheard'],
      ['lost', 'unheard'],
    ]);
    await says({ type: 'CUSTOM', name: 'task:completed', value: { task_id: 'b1', status: 'completed' } });
    expect((await tasks())?.map(({ status }) => status)).toEqual(['completed', 'running']);
    expect(await session()).toMatchObject({ runningTaskCount: 1, away: null });
  });

  it('is given twice the time in which it promised its next record', async () => {
    await turnStarts();
    await reports({ kind: 'http', everyMs: 300_000 });
    await sweepAt(T0 + 600_000 - 1);
    expect(await known()).toMatchObject({ state: 'working' });
    await sweepAt(T0 + 600_000);
    expect(await known()).toMatchObject({ state: 'unknown' });
  });

  it('is missed no sooner than after fifteen seconds, however often it promised to report', async () => {
    await turnStarts();
    await reports({ kind: 'http', everyMs: 1_000 });
    await sweepAt(T0 + 14_999);
    expect(await known()).toMatchObject({ state: 'working' });
    await sweepAt(T0 + 15_000);
    expect(await known()).toMatchObject({ state: 'unknown' });
  });

  it('is silent with none of its sessions while it speaks in one, and heard of again only where it speaks', async () => {
    await turnStarts('s1');
    await turnStarts('s2');
    now = T0 + 100_000;
    await says({ type: 'CUSTOM', name: 'marker' }, 's2');
    await sweepAt(T0 + SILENT_MS);
    expect(await known('s1')).toMatchObject({ state: 'working' });
    await sweepAt(T0 + 100_000 + SILENT_MS);
    expect([(await known('s1'))?.state, (await known('s2'))?.state]).toEqual(['unknown', 'unknown']);
    now += 5_000;
    await says({ type: 'CUSTOM', name: 'marker' }, 's2');
    expect([(await known('s1'))?.state, (await known('s2'))?.state]).toEqual(['unknown', 'working']);
    await sweepAt(now + SILENT_MS);
    expect((await known('s2'))?.state).toBe('unknown');
  });

  const rests = async () => {
    await turnStarts();
    await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 't0' });
  };

  it('rests for as long as it likes where nothing is under way', async () => {
    await rests();
    await sweepAt(T0 + SILENT_MS);
    await sweepAt(T0 + 24 * 3_600_000);
    expect(await known()).toMatchObject({ state: 'idle', away: null });
    await turnStarts();
    await sweepAt(now + SILENT_MS);
    expect(await known()).toMatchObject({ state: 'unknown', evidence: { last: 'working' } });
  });

  it.each([
    ['a task runs', { type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } }],
    ['a request waits', { type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q1', title: 'Run?' } }],
  ])('is silent where %s beside its turns', async (_what, event) => {
    await rests();
    await says(event);
    await sweepAt(T0 + SILENT_MS);
    expect(await known()).toMatchObject({ away: { isSilent: true } });
  });

  it('breaks its promise without a word in the transcript where nothing was under way', async () => {
    await rests();
    await reports({ kind: 'http', everyMs: 10_000 });
    await sweepAt(T0 + SILENT_MS);
    expect(await known()).toMatchObject({
      state: 'unknown',
      stateReason: 'it has fallen silent',
      evidence: { last: 'idle' },
    });
    expect(await notices()).toEqual([]);
  });

  it('is as silent after a restart as before', async () => {
    await turnStarts();
    now = T0 + SILENT_MS;
    await target.restart();
    await sweep();
    expect(await known()).toMatchObject({ state: 'unknown' });
  });
});

describe('an agent whose runner has gone and that posts without one', () => {
  const REPORT = { kind: 'claude', runner: { id: RUNNER.id }, everyMs: 10_000 };
  const speaks = () => says({ type: 'TEXT_MESSAGE_CHUNK', messageId: `m${seq}`, role: 'assistant', delta: 'x' });
  async function postsEvery(seconds: number, times: number): Promise<void> {
    for (let post = 0; post < times; post += 1) {
      await speaks();
      for (let second = 0; second < seconds; second += 1) await sweepAt(now + 1_000);
    }
  }
  const leavesForGood = async () => {
    await connect();
    await reports(REPORT);
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'unknown' });
  };

  it('is heard of as long as it posts, and silent two minutes after', async () => {
    await leavesForGood();
    await postsEvery(30, 5);
    expect(await session()).toMatchObject({ state: 'working', away: null });
    expect(await notices()).toEqual(['runner-away']);
    await sweepAt(now + SILENT_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { isSilent: true } });
    await speaks();
    expect(await session()).toMatchObject({ state: 'working' });
    await postsEvery(30, 2);
    expect(await session()).toMatchObject({ state: 'working' });
    expect(await notices()).toEqual(['runner-away', 'runner-away']);
  });

  it('is missed within 30 s once a runner speaks for it, though that has no stream', async () => {
    await leavesForGood();
    await speaks();
    await reports({ ...REPORT, model: 'x' });
    await sweepAt(now + RUNNER_GRACE_MS);
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({
      state: 'unknown',
      stateReason: expect.stringMatching(/^its runner has gone/),
    });
  });

  it('has a runner again once one connects', async () => {
    await leavesForGood();
    await speaks();
    await connect(AFTER, 'two');
    await speaks();
    await leave('two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({
      state: 'unknown',
      stateReason: expect.stringMatching(/^its runner has gone/),
    });
  });

  it.each([
    [0, SILENT_MS],
    [-1_000, SILENT_MS],
    [1.5, SILENT_MS],
    [Number.MAX_SAFE_INTEGER, 20 * 60_000],
  ])('or never had one, and promises its next record within %i ms, is silent after %i', async (everyMs, silentMs) => {
    await turnStarts();
    await reports({ kind: 'http', everyMs });
    await sweepAt(T0 + silentMs - 1);
    expect(await session()).toMatchObject({ state: 'working' });
    await sweepAt(T0 + silentMs);
    expect(await session()).toMatchObject({ state: 'unknown' });
  });
});

describe('a runner that comes back', () => {
  it('has its sessions work again when it is the same process, and says for how long it was away', async () => {
    await connect();
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    now += 60_000;
    await connect(RUNNER, 'two');
    expect(await session()).toMatchObject({ state: 'working', away: null });
    expect(await notices()).toEqual(['runner-away', 'runner-back']);
  });

  it('within the grace is not worth a word', async () => {
    await connect();
    await turnStarts();
    await leave();
    now += RUNNER_GRACE_MS - 1;
    await connect(RUNNER, 'two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await notices()).toEqual([]);
  });

  it('as another process takes up only what it speaks of', async () => {
    await succeeds();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
    await reports({ kind: 'claude' }, 's1');
    expect(await session('s1')).toMatchObject({ state: 'working', away: null });
  });

  it('as another process whose stream breaks within the grace leaves nothing untold that it does not carry', async () => {
    await succeeds();
    now += 2_000;
    await leave('two');
    now += 1_000;
    await connect(AFTER, 'three');
    await sweepAt(T0 + RUNNER_GRACE_MS);
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    await sweepAt(now + 10 * RUNNER_GRACE_MS);
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
  });

  it('as another process whose stream breaks has only its own sessions back', async () => {
    await succeeds();
    await sweepAt(T0 + RUNNER_GRACE_MS);
    await leave('two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s2')).toMatchObject({ state: 'unknown' });
    await connect(AFTER, 'three');
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
  });

  it('is missed all the same where each of its successors dies within the grace', async () => {
    await connect();
    await turnStarts('s1');
    await leave();
    now += 5_000;
    await connect(AFTER, 'two');
    await turnStarts('s2');
    now += 2_000;
    await leave('two');
    const diedAt = now;
    now += 1_000;
    await connect({ id: 'r3', startedAt: 3_000 }, 'three');
    for (; now <= diedAt + MOST_MS; now += 1_000) {
      await write((transaction) => renewRunners(transaction, ['three'], now));
      await sweep();
    }
    expect(await session('s1')).toMatchObject({ state: 'unknown' });
    expect(await session('s2')).toMatchObject({ state: 'unknown' });
    expect(await notices()).toEqual(['runner-away']);
  });

  it('never undoes what the agent said of its own end', async () => {
    await connect();
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    await says({ type: 'CUSTOM', name: 'session:ended', value: { reason: 'killed', exitCode: 137 } });
    await connect(RUNNER, 'two');
    expect(await session()).toMatchObject({ state: 'exited', stateReason: 'killed', away: null });
  });
});

describe('an agent that speaks though nobody listens for it', () => {
  it('works as long as it speaks, and is missed again when it does not', async () => {
    await connect();
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    now += 1_000;
    await says({ type: 'CUSTOM', name: 'marker', value: 2 });
    expect(await session()).toMatchObject({ state: 'working', away: null });
    await sweepAt(now + SILENT_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { isSilent: true } });
  });

  it('is missed where it begins a turn after its runner was told to have gone', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'marker', value: 1 });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    now += 60_000;
    await turnStarts();
    await sweepAt(now + SILENT_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { isSilent: true } });
  });

  it('is not said to have gone while it goes on speaking', async () => {
    await connect();
    await turnStarts();
    await leave();
    for (let step = 0; step < 5; step += 1) {
      now += RUNNER_GRACE_MS / 2;
      await says({ type: 'CUSTOM', name: 'marker', value: step });
      await sweep();
    }
    expect(await notices()).toEqual([]);
  });
});

describe('a runner whose connection stands but that says nothing', () => {
  const STATUS = { kind: 'claude', runner: { id: 'r1' }, everyMs: 10_000 };
  const mute = () => write((transaction) => disconnectUnresponsive(transaction, ['one'], now));

  it('is missed once it has broken its own promise to report, and within 30 s', async () => {
    await connect();
    await turnStarts();
    await reports(STATUS);
    now = T0 + 20_000;
    expect(await mute()).toEqual([]);
    now = T0 + 20_001;
    expect(await mute()).toEqual(['one']);
    await sweep();
    expect(await session()).toMatchObject({ state: 'unknown', away: { lastHeardAt: T0 } });
  });

  it('is not missed while it says that all is as it was', async () => {
    await connect();
    await turnStarts();
    for (let report = 0; report < 12; report += 1) {
      await reports(STATUS);
      now += 10_000;
      expect(await mute()).toEqual([]);
    }
    now += 10_001;
    expect(await mute()).toEqual(['one']);
  });

  it('has only what it speaks of again, word for word as before, when it took the place of another', async () => {
    const successor = { ...STATUS, runner: { id: AFTER.id } };
    await connect();
    await turnStarts('s1');
    await turnStarts('s2');
    now += 5_000;
    await reports(successor, 's2');
    await connect(AFTER, 'two');
    now += RUNNER_GRACE_MS - 1_000;
    await reports(successor, 's2');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s1')).toMatchObject({ state: 'unknown' });
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
  });

  it('is not missed where it promised nothing, or another runner did', async () => {
    await connect();
    await turnStarts();
    await reports({ kind: 'claude' });
    now = T0 + 3_600_000;
    expect(await mute()).toEqual([]);
    await reports({ ...STATUS, runner: { id: 'r0' } });
    now += 3_600_000;
    expect(await mute()).toEqual([]);
  });
});
