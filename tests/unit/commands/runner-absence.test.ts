import { RUNNER_AWAY_MS, RUNNER_GRACE_MS, SILENT_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
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

/** Sessions of an absent runner, with an injected clock. */
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
/** A runner with two sessions in mid-turn dies, and another process reports the second 5 s later. */
async function succeeds(): Promise<void> {
  await connect();
  await turnStarts('s1');
  await turnStarts('s2');
  await leave();
  now += 5_000;
  await connect(AFTER, 'two');
  await reports({ kind: 'claude' }, 's2');
}
const session = async (id = 's1') => (await readSession(unscoped(target.database), id))?.session;
const tasks = async () => (await readTasks(unscoped(target.database), 's1'))?.tasks;
const runningTasks = async () =>
  (await readAgents(unscoped(target.database), { after: null, limit: 1, words: [] })).agents[0]?.runningTaskCount;
const notices = async () => {
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  return page?.turns.flatMap(({ items }) => items).flatMap((item) => (item.kind === 'notice' ? [item.code] : []));
};

describe('a runner killed in mid-turn', () => {
  it('shows nothing as working after 30 s', async () => {
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

  it('is marked after its term and grace when its server died too', async () => {
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

  it('is marked within 15 s when one of two servers died', async () => {
    await connect();
    await turnStarts();
    const other = hub();
    for (now = T0; now < T0 + RUNNER_AWAY_MS; now += 1_000) await other.sweep();
    expect(await session()).toMatchObject({ state: 'working' });
    await other.sweep();
    expect(await session()).toMatchObject({ state: 'unknown', away: { since: T0 + RUNNER_AWAY_MS } });
    expect(RUNNER_AWAY_MS).toBeLessThan(15_000 - 2_000);
  });

  it('counts from its last record when that is later than the renewal', async () => {
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

  it('gets a new grace from a server that was asleep', async () => {
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

  it('gets a new grace from a server that was down', async () => {
    await connect();
    await turnStarts();
    await sweepAt(T0 + 3_600_000);
    expect(await session()).toMatchObject({ state: 'working' });
    now += RUNNER_GRACE_MS - 1;
    await connect(RUNNER, 'two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'working', away: null });
  });

  it('is marked once, by the first server', async () => {
    await connect();
    await turnStarts();
    await leave();
    now += RUNNER_GRACE_MS;
    await Promise.all([sweep(), sweep()]);
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await notices()).toEqual(['runner-away']);
  });

  it('marks a session with a running task', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    const stateReason = 'its runner has gone while it waited for its tasks';
    expect(await session()).toMatchObject({ state: 'unknown', stateReason });
  });

  it('marks its tasks as lost within 30 s, until the same process returns', async () => {
    await connect();
    await turnStarts();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await says({ type: 'RUN_FINISHED', threadId: 's1', runId: 't0' });
    now += 5_000;
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    const since = new Date(T0 + 5_000).toISOString();
    const error = `No signal from its runner since ${since}. How the task ended is unknown.`;
    expect(await tasks()).toMatchObject([{ status: 'lost', presumed: 'unheard', endedAt: T0 + 5_000, error }]);
    expect(await session()).toMatchObject({ state: 'unknown', evidence: { last: 'waiting-on-background' } });
    expect([(await session())?.runningTaskCount, await runningTasks()]).toEqual([0, 0]);
    await connect(RUNNER, 'two');
    expect(await tasks()).toMatchObject([{ status: 'running', error: null, endedAt: null }]);
    expect((await tasks())?.[0]).not.toHaveProperty('presumed');
    expect(await session()).toMatchObject({ state: 'waiting-on-background', runningTaskCount: 1 });
    expect(await notices()).toEqual(['runner-away', 'runner-back']);
  });

  it('restores the tasks that its successor lists, and no others', async () => {
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

  it('keeps tasks running when the agent is not its child', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await reports({ kind: 'hooks', agentGoesOn: true });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await tasks()).toMatchObject([{ status: 'running' }]);
  });

  it('leaves requests open, and shows that the runner is away', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'request:opened', value: { request_id: 'q' } });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session()).toMatchObject({ state: 'needs-input', away: { since: T0 } });
  });

  it('writes no notice in an idle transcript, and marks no ended session', async () => {
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
    expect(await session('s2')).toMatchObject({ state: 'exited', stateReason: 'exit code 137: killed', away: null });
    expect(await session('s3')).toMatchObject({
      state: 'unknown',
      stateReason: 'its runner has gone',
      evidence: { last: 'failed' },
    });
  });

  it('marks the agent as unseen, not ended, when it is not its child', async () => {
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

  it('is unknown after two minutes of silence, with its last state', async () => {
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

  it('loses its tasks while it is silent, until it reports their end', async () => {
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

  it('is silent after twice its promised interval', async () => {
    await turnStarts();
    await reports({ kind: 'http', everyMs: 300_000 });
    await sweepAt(T0 + 600_000 - 1);
    expect(await known()).toMatchObject({ state: 'working' });
    await sweepAt(T0 + 600_000);
    expect(await known()).toMatchObject({ state: 'unknown' });
  });

  it('is never silent before fifteen seconds', async () => {
    await turnStarts();
    await reports({ kind: 'http', everyMs: 1_000 });
    await sweepAt(T0 + 14_999);
    expect(await known()).toMatchObject({ state: 'working' });
    await sweepAt(T0 + 15_000);
    expect(await known()).toMatchObject({ state: 'unknown' });
  });

  it('is not silent while one session reports, and only that session recovers', async () => {
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

  it('may be idle for any time', async () => {
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

  it('writes no notice in an idle transcript when it breaks its promise', async () => {
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

  it('stays silent across a restart', async () => {
    await turnStarts();
    now = T0 + SILENT_MS;
    await target.restart();
    await sweep();
    expect(await known()).toMatchObject({ state: 'unknown' });
  });
});

describe('an agent that posts after its runner left', () => {
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

  it('is silent two minutes after its last post', async () => {
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

  it('is marked within 30 s once a runner without a stream reports for it', async () => {
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

  it('has a runner once one connects', async () => {
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
  it('restores its sessions when it is the same process, with the time it was away', async () => {
    await connect();
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    now += 60_000;
    await connect(RUNNER, 'two');
    expect(await session()).toMatchObject({ state: 'working', away: null });
    expect(await notices()).toEqual(['runner-away', 'runner-back']);
  });

  it('writes no notice within the grace', async () => {
    await connect();
    await turnStarts();
    await leave();
    now += RUNNER_GRACE_MS - 1;
    await connect(RUNNER, 'two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await notices()).toEqual([]);
  });

  it('restores only reported sessions when it is another process', async () => {
    await succeeds();
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
    await reports({ kind: 'claude' }, 's1');
    expect(await session('s1')).toMatchObject({ state: 'working', away: null });
  });

  it('marks unreported sessions when its stream breaks within the grace', async () => {
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

  it('restores only its own sessions after its stream breaks', async () => {
    await succeeds();
    await sweepAt(T0 + RUNNER_GRACE_MS);
    await leave('two');
    await sweepAt(now + RUNNER_GRACE_MS);
    expect(await session('s2')).toMatchObject({ state: 'unknown' });
    await connect(AFTER, 'three');
    expect(await session('s1')).toMatchObject({ state: 'unknown', away: { since: T0 } });
    expect(await session('s2')).toMatchObject({ state: 'working', away: null });
  });

  it('is marked when each of its successors dies within the grace', async () => {
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

  it('never reopens a session that the agent ended', async () => {
    await connect();
    await turnStarts();
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    await says({ type: 'CUSTOM', name: 'session:ended', value: { reason: 'killed', exitCode: 137 } });
    await connect(RUNNER, 'two');
    expect(await session()).toMatchObject({ state: 'exited', stateReason: 'exit code 137: killed', away: null });
  });
});

describe('an agent that posts without a connected runner', () => {
  it('works while it reports, and is marked when it stops', async () => {
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

  it('is marked when it begins a turn after its runner left', async () => {
    await connect();
    await says({ type: 'CUSTOM', name: 'marker', value: 1 });
    await leave();
    await sweepAt(now + RUNNER_GRACE_MS);
    now += 60_000;
    await turnStarts();
    await sweepAt(now + SILENT_MS);
    expect(await session()).toMatchObject({ state: 'unknown', away: { isSilent: true } });
  });

  it('is not marked while it keeps reporting', async () => {
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

describe('a connected runner that reports nothing', () => {
  const STATUS = { kind: 'claude', runner: { id: 'r1' }, everyMs: 10_000 };
  const mute = () => write((transaction) => disconnectUnresponsive(transaction, ['one'], now));

  it('is marked within 30 s once it breaks its promise', async () => {
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

  it('is not marked while it reports no change', async () => {
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

  it('restores only what it reports when it replaced another runner', async () => {
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

  it('is not marked without a promise of its own', async () => {
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
