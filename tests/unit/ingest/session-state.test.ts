import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { connectRunner, renewRunners } from '@/lib/server/commands/runner-connection';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readSession } from '@/lib/server/queries/read-sessions';
import { callRoute } from '../../support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** A session's state over time, with a fake clock. */
const T0 = 1_795_170_000_000;

let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
  // its stream stays open, so all published rows arrive
  await target.database.writes.run((transaction) =>
    connectRunner(transaction, 'a1', { id: 'r', startedAt: 1 }, 'one', now + 1e9),
  );
});
afterEach(() => target.close());

const says = (event: AgUiEvent, sessionId = 's1') => ingest(target, [record(++seq, { event, sessionId })]);
const reports = (status: object, sessionId = 's1') =>
  ingest(target, [record(++seq, { kind: 'status', sessionId, status, event: undefined })]);
const starts = (runId: string, sessionId = 's1', userMessageIds?: string[]) => {
  const named = userMessageIds === undefined ? {} : { metadata: { interlude: { userMessageIds } } };
  return says({ type: 'RUN_STARTED', threadId: sessionId, runId, ...named }, sessionId);
};
const speaks = (id: string) => says({ type: 'TEXT_MESSAGE_CHUNK', messageId: id, role: 'assistant', delta: 'Done.' });
const finishes = (runId: string, more: object = {}, sessionId = 's1') =>
  says({ type: 'RUN_FINISHED', threadId: sessionId, runId, ...more }, sessionId);
const writes = (id: string, metadata: object = {}) =>
  ingest(target, [
    record(++seq, { event: { type: 'TEXT_MESSAGE_START', messageId: id, role: 'user', metadata } }),
    record(++seq, { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: 'Go on' } }),
    record(++seq, { event: { type: 'TEXT_MESSAGE_END', messageId: id } }),
  ]);
const hub = () => new CommandHub({ database: target.database, now: () => now, steady: () => now });
async function passes(seconds: number): Promise<void> {
  now += seconds * 1_000;
  await target.database.writes.run((transaction) => renewRunners(transaction, ['one'], now));
  await hub().sweep();
}
const session = async (id = 's1') => (await readSession(unscoped(target.database), id))?.session;
/** State, rule and note. */
const stands = async (id = 's1') => {
  const found = await session(id);
  const { rule, note } = found?.evidence ?? {};
  return [found?.state, rule, ...(note === undefined ? [] : [note])];
};

describe('a status that the agent reports', () => {
  it('counts in its own session only', async () => {
    await starts('r1', 's1');
    await finishes('r1', {}, 's1');
    await starts('r2', 's2');
    await finishes('r2', {}, 's2');
    await reports({ report: { state: 'complete', summary: 'All green' } }, 's1');
    await reports({ report: { state: 'failure', summary: 'No credit' } }, 's2');
    expect(await session('s1')).toMatchObject({ state: 'complete', stateReason: 'All green' });
    expect(await session('s2')).toMatchObject({ state: 'failed', stateReason: 'No credit' });
    const { agents } = await readAgents(unscoped(target.database), { after: null, limit: 10, words: [] });
    expect(agents[0]?.sessionStates).toMatchObject({ complete: 1, failed: 1, idle: 0 });
  });

  it.each([
    ['complete', 'complete', 6],
    ['completed', 'complete', 6],
    ['failure', 'failed', 5],
    ['error', 'failed', 5],
    ['idle', 'idle', 11],
    ['working', 'working', 12],
    ['busy', 'working', 14],
    ['still', 'idle', 14],
  ])('with the word %s is %s', async (word, state, rule) => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
    await reports({ state: word });
    expect((await stands()).slice(0, 2)).toEqual([state, rule]);
  });

  it('in a continuing turn counts for a moment, and again once that turn ended', async () => {
    await starts('r1');
    await speaks('m1');
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 }, openTurnId: 'r1' });
    expect(await stands()).toEqual(['complete', 7]);
    await passes(5);
    expect(await stands()).toEqual(['working', 8]);
    await finishes('r1');
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('becomes a note once the agent ran for five more seconds', async () => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
    await reports({ report: { state: 'complete', summary: 'Done' } });
    await starts('r2');
    expect(await stands()).toEqual(['complete', 7]);
    await passes(5);
    expect(await stands()).toEqual(['working', 8, 'resumed']);
    expect((await session())?.evidence.report).toMatchObject({ state: 'complete', summary: 'Done' });
  });

  it('expires when a person writes, until it is reported again in the answering turn', async () => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
    const complete = { report: { state: 'complete', summary: 'Done' } };
    await reports(complete);
    await writes('u1');
    expect(await stands()).toEqual(['working', 4, 'delivering']);
    await reports({ ...complete, pendingMessages: 1 });
    expect(await stands()).toEqual(['working', 4, 'delivering']);
    await starts('r2');
    expect(await stands()).toEqual(['working', 14]);
    await speaks('m2');
    await finishes('r2');
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    await reports(complete);
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('in the turn before the answering one does not count, even when it arrives after the message', async () => {
    await starts('r1');
    await speaks('m1');
    await writes('u1', { interlude: { delivery: 'queued' } });
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 } });
    await finishes('r1');
    expect((await session())?.state).not.toBe('complete');
    await says({
      type: 'RUN_STARTED',
      threadId: 's1',
      runId: 'r2',
      metadata: { interlude: { userMessageIds: ['u1'] } },
    });
    await speaks('m2');
    await reports({ report: { state: 'complete', turnId: 'r2', at: 2 } });
    await finishes('r2');
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('in a turn that later proves to be the answer counts', async () => {
    await starts('r1');
    await writes('u1', { interlude: { delivery: 'queued' } });
    await speaks('m1');
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 } });
    await finishes('r1', { metadata: { interlude: { userMessageIds: ['u1'] } } });
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('counts in the turn that it names, if that is known', async () => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
    await writes('u2');
    await starts('r2', 's1', ['u2']);
    await reports({ openTurnId: 'r2', report: { state: 'complete', summary: 'old', turnId: 'r1', at: 5 } });
    expect(await stands()).toEqual(['working', 14]);
    expect((await session())?.evidence.report).toMatchObject({ summary: 'old', isOutdated: true });
    await speaks('m2');
    await finishes('r2');
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    await reports({ openTurnId: null, report: { state: 'complete', summary: 'new', turnId: 'r2', at: 6 } });
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('in the turn that answers one of two messages does not concern the other', async () => {
    await writes('u1', { interlude: { delivery: 'queued' } });
    await writes('u2', { interlude: { delivery: 'queued' } });
    await starts('r1', 's1', ['u1']);
    await speaks('m1');
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 }, openTurnId: 'r1' });
    await finishes('r1');
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    await starts('r2', 's1', ['u2']);
    await speaks('m2');
    await reports({ report: { state: 'complete', turnId: 'r2', at: 2 }, openTurnId: 'r2' });
    await finishes('r2');
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('counts again when the unanswered message never reached the agent', async () => {
    await starts('r1');
    await speaks('m1');
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 }, openTurnId: 'r1' });
    await finishes('r1');
    await writes('u1', { interlude: { delivery: 'queued' } });
    expect(await stands()).toEqual(['working', 4, 'delivering']);
    await says({ type: 'CUSTOM', name: 'message:delivery', value: { message_id: 'u1', delivery: 'failed' } });
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('stays when the answered message is repeated', async () => {
    await writes('u1');
    await writes('u2');
    await starts('r1', 's1', ['u1', 'u2']);
    await speaks('m1');
    await reports({ report: { state: 'complete', turnId: 'r1', at: 3 }, openTurnId: 'r1' });
    await finishes('r1');
    for (const id of ['u1', 'u2']) await says({ type: 'TEXT_MESSAGE_CHUNK', messageId: id, role: 'user', delta: '' });
    expect(await stands()).toEqual(['complete', 6]);
  });

  it('of an older turn neither answers a message nor clears a failure', async () => {
    await starts('r1');
    await finishes('r1');
    await starts('r2');
    await says({ type: 'RUN_ERROR', runId: 'r2', message: 'No credit' });
    await reports({ report: { state: 'complete', turnId: 'r1', at: 3 }, openTurnId: null });
    expect(await stands()).toEqual(['failed', 5]);
    await writes('u1', { interlude: { delivery: 'queued' } });
    await reports({ report: { state: 'complete', turnId: 'r1', at: 4 }, openTurnId: null });
    expect(await stands()).toEqual(['working', 4, 'delivering']);
  });

  it('is truncated to 160 characters, and other values count as none', async () => {
    await reports({ report: { state: 'complete', summary: 'x'.repeat(500) } });
    expect((await session())?.stateReason).toHaveLength(160);
    await reports({ report: { state: 'asleep' }, state: 7, process: 'gone', openTurnId: [] }, 's2');
    expect(await stands('s2')).toEqual(['starting', 15]);
  });

  it('is published when it changes, not with each record that repeats it', async () => {
    await starts('r1');
    const status = { report: { state: 'working', summary: 'Step 1' } };
    await reports(status);
    const before = (await session())?.updatedPosition;
    await reports({ ...status, outbox: { depth: 1 } });
    expect((await session())?.updatedPosition).toBe(before);
    await reports({ report: { state: 'working', summary: 'Step 2' } });
    expect(await session()).toMatchObject({ stateReason: 'Step 2' });
    expect((await session())?.updatedPosition).not.toBe(before);
  });
});

describe('an observed state', () => {
  it('is idle from the first status record while no turn is open', async () => {
    await reports({ openTurnId: null, process: { state: 'starting', pid: null, exitCode: null } });
    expect(await stands()).toEqual(['starting', 15]);
    await reports({ openTurnId: null, process: { state: 'running', pid: 7, exitCode: null } });
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
  });

  it('ends an open turn whose end was lost, and yields to later events of that turn', async () => {
    await starts('r1');
    await reports({ openTurnId: null });
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    await starts('r2');
    expect(await stands()).toEqual(['working', 14]);
  });

  it('is ended when the process ended, until it runs again', async () => {
    await starts('r1');
    await reports({ process: { state: 'exited', pid: null, exitCode: null, signal: 'SIGKILL' } });
    expect(await session()).toMatchObject({ state: 'exited', stateReason: 'killed by SIGKILL' });
    await reports({ process: { state: 'restarting', pid: null, exitCode: null } });
    expect(await stands()).toEqual(['working', 14, 'restarting']);
    await reports({ process: { state: 'running', pid: 8, exitCode: null }, openTurnId: null });
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
  });

  it('is complete when the process reported that and ended well, and exited otherwise', async () => {
    await starts('r1');
    await speaks('m1');
    await reports({ report: { state: 'complete', summary: 'All green', turnId: 'r1' } });
    await finishes('r1');
    await says({ type: 'CUSTOM', name: 'session:ended', value: { exitCode: 0 } });
    expect(await session()).toMatchObject({ state: 'complete', evidence: { rule: 1 } });
    await reports({ report: { state: 'complete' } }, 's2');
    await says({ type: 'CUSTOM', name: 'session:ended', value: { exitCode: 1 } }, 's2');
    expect(await session('s2')).toMatchObject({ state: 'exited', stateReason: 'exit code 1' });
  });

  it('is compacting', async () => {
    await starts('r1');
    await reports({ state: 'compacting' });
    expect(await stands()).toEqual(['working', 14, 'compacting']);
    await reports({ state: 'busy' });
    expect(await stands()).toEqual(['working', 14]);
  });

  it('is finished without a report', async () => {
    await starts('r1');
    await finishes('r1');
    expect(await stands()).toEqual(['idle', 14, 'no-output']);
  });
});

describe('an agent without turns', () => {
  it('is idle since its last record', async () => {
    await speaks('m1');
    await reports({ state: 'working' });
    for (let second = 0; second < 20; second += 1) {
      await passes(1);
      await speaks(`n${second}`);
    }
    expect(await stands()).toEqual(['working', 12]);
    await passes(10);
    expect(await stands()).toEqual(['idle', 13, 'inferred']);
  });

  it('is stuck after ten minutes of working reports without events', async () => {
    await reports({ state: 'working' });
    await passes(599);
    expect(await stands()).toEqual(['working', 12]);
    await passes(1);
    expect(await stands()).toEqual(['working', 16, 'no-progress']);
  });

  it('fails when its run is reported as failed, and recovers with the next event', async () => {
    await writes('u1');
    await says({ type: 'RUN_ERROR', message: 'No credit' });
    expect(await session()).toMatchObject({ state: 'failed', stateReason: 'No credit', evidence: { rule: 5 } });
    await says({ type: 'STATE_SNAPSHOT', snapshot: {} });
    expect(await stands()).toEqual(['failed', 5]);
    await passes(1);
    await speaks('m1');
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
  });

  it('does not fail when an ended run is reported as failed', async () => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
    await says({ type: 'RUN_ERROR', message: 'Told late', runId: 'r1' });
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
  });

  it('is not unreachable while it sends any record', async () => {
    await says({ type: 'STATE_SNAPSHOT', snapshot: {} });
    for (let second = 0; second < 70; second += 10) {
      await passes(10);
      await says({ type: 'STATE_SNAPSHOT', snapshot: { second } });
    }
    expect(await stands()).toEqual(['starting', 15]);
    await passes(60);
    expect(await session()).toMatchObject({ state: 'unknown', stateReason: 'it reports nothing about its activity' });
  });
});

describe('the observed state after a reported done', () => {
  const isDone = async () => {
    await starts('r1');
    await speaks('m1');
    await finishes('r1');
  };

  it('starts now: an earlier hour of silence is not a lack of progress', async () => {
    await isDone();
    await passes(3_600);
    await reports({ state: 'busy' });
    await passes(30);
    expect(await stands()).toEqual(['working', 14]);
    await passes(570);
    expect(await stands()).toEqual(['working', 16, 'no-progress']);
  });

  it('ends now: it is idle since then', async () => {
    await isDone();
    await passes(3_600);
    await reports({ state: 'busy' });
    await passes(30);
    await reports({ state: 'still' });
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    expect((await session())?.evidence).toMatchObject({ source: 'agent', observedAt: now });
  });

  it.each(['compacting', 'restarting'])('is %s rather than working', async (what) => {
    await isDone();
    await reports({ report: { state: 'complete', turnId: 'r1', at: 1 } });
    await passes(60);
    await reports(
      what === 'compacting'
        ? { state: what, report: { state: 'complete', turnId: 'r1', at: 1 } }
        : { process: { state: what, pid: null, exitCode: null }, report: { state: 'complete', turnId: 'r1', at: 1 } },
    );
    await passes(6);
    expect(await stands()).toEqual(['working', 8, what]);
  });

  it('is not silence when its text came in a snapshot', async () => {
    const answer = { id: 'm1', role: 'assistant', content: 'All of the answer' };
    await starts('r1');
    await says({ type: 'MESSAGES_SNAPSHOT', messages: [answer] });
    await finishes('r1');
    expect(await stands()).toEqual(['idle', 14, 'inferred']);
    await starts('r2');
    await says({ type: 'MESSAGES_SNAPSHOT', messages: [answer, { id: 'u2', role: 'user', content: 'And?' }] });
    await finishes('r2');
    expect(await stands()).toEqual(['idle', 14, 'no-output']);
  });
});

describe('a state change caused by time', () => {
  it('is made and published by any instance, also after a restart', async () => {
    await starts('r1');
    await reports({ report: { state: 'working' } });
    await finishes('r1');
    expect(await session()).toMatchObject({ state: 'working', stateDueAt: now + 10_000 });
    const before = (await session())?.updatedPosition;
    await passes(9.999);
    expect(await session()).toMatchObject({ state: 'working', updatedPosition: before });
    await target.restart();
    await passes(0.001);
    expect(await session()).toMatchObject({ state: 'idle', stateSince: now, stateDueAt: null });
    expect((await session())?.updatedPosition).not.toBe(before);
    expect((await session())?.lastEventAt).toBe(T0);
  });

  it('waits on the background since the moment a turn ended with a running task', async () => {
    await starts('r1');
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await finishes('r1');
    expect(await session()).toMatchObject({ state: 'waiting-on-background', stateSince: now, stateDueAt: null });
  });

  it('reports no progress after ten minutes of silence, until the next event', async () => {
    await starts('r1');
    await passes(600);
    expect(await stands()).toEqual(['working', 16, 'no-progress']);
    await speaks('m1');
    expect(await stands()).toEqual(['working', 14]);
  });

  it('happens once, however many servers check', async () => {
    await reports({ kind: 'claude' });
    now += 60_000;
    await Promise.all([hub().sweep(), hub().sweep()]);
    const published = (await session())?.updatedPosition;
    expect(await stands()).toEqual(['unknown', 15]);
    await passes(3_600);
    expect((await session())?.updatedPosition).toBe(published);
  });

  it('is late by its full term after the clock was set back by a day', async () => {
    const own = hub();
    await own.sweep();
    await starts('r1');
    await says({ type: 'CUSTOM', name: 'task:started', value: { task_id: 'b1' } });
    await finishes('r1');
    now -= 24 * 3_600_000;
    await target.restart();
    await hub().sweep();
    await passes(600);
    await passes(2);
    expect((await session())?.state).toBe('waiting-on-background');
  });
});

it('a state that was received late keeps the time at which it began, on the server’s clock', async () => {
  const [failedAt, skewMs] = [T0 - 3 * 86_400_000, -7_200_000];
  const outbox = { depth: 0, oldestAgeMs: null, poisoned: 0, lost: 0 };
  const began = async () => {
    const { items } = await readInbox(unscoped(target.database), { after: null, limit: 10 });
    const found = await session();
    if (found === undefined) throw new Error('no session');
    return [found.stateSince, found.stateOccurredAt, ...items.flatMap(({ since, occurredAt }) => [since, occurredAt])];
  };
  await ingest(target, [
    record(++seq, { kind: 'status', status: { outbox }, occurredAt: T0 + skewMs, event: undefined }),
    record(++seq, { occurredAt: failedAt + skewMs, event: { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' } }),
    record(++seq, { occurredAt: failedAt + skewMs, event: { type: 'RUN_ERROR', runId: 'r1', message: 'No credit' } }),
  ]);
  expect(await began()).toEqual([T0, failedAt, T0, failedAt]);
  // a later record, and thresholds count from the time of receipt
  now += 300_000;
  await ingest(target, [record(++seq, { kind: 'status', status: { state: 'still' }, event: undefined })]);
  expect(await began()).toEqual([T0, failedAt, T0, failedAt]);
  await ingest(target, [
    record(++seq, { occurredAt: now + skewMs, event: { type: 'RUN_STARTED', threadId: 's1', runId: 'r2' } }),
  ]);
  expect(await began()).toEqual([now, undefined]);
});

it('an agent counts its stalled sessions until they continue', async () => {
  const brokenOff = async () => {
    const { agents } = await readAgents(unscoped(target.database), { after: null, limit: 10, words: [] });
    return [agents[0]?.sessionStates.exited, agents[0]?.brokenOffCount, agents[0]?.listedStates.failed];
  };
  const ends = (exit: object, sessionId: string) =>
    says({ type: 'CUSTOM', name: 'session:ended', value: exit }, sessionId);
  await starts('r1', 's1');
  await starts('r2', 's2');
  await ends({ signal: 'SIGKILL' }, 's1');
  await ends({ exitCode: 0 }, 's2');
  expect(await brokenOff()).toEqual([2, 1, 1]);
  now += 60_000;
  await starts('r3', 's1');
  expect(await brokenOff()).toEqual([1, 0, 0]);
});

it('an agent has the state of its most urgent session, since it came into that state', async () => {
  const agent = async () => {
    const { agents } = await readAgents(unscoped(target.database), { after: null, limit: 10, words: [] });
    return [agents[0]?.state, (agents[0]?.stateSince ?? 0) - T0];
  };
  await starts('r1', 's1');
  expect(await agent()).toEqual(['working', 0]);
  now += 1_000;
  await starts('r2', 's2');
  await finishes('r1', {}, 's1');
  expect(await agent()).toEqual(['working', 0]);
  await reports({ report: { state: 'failure', summary: 'No credit' } }, 's1');
  expect(await agent()).toEqual(['failed', 1_000]);
  now += 1_000;
  const body = { seenState: T0 + 1_000 };
  await callRoute(target.context, 'PUT', '/sessions/s1/arrangement', { body });
  expect(await agent()).toEqual(['working', 2_000]);
});
