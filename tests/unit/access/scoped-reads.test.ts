import { EVERY_LINE } from '@interlude/protocol/projections/log-filter';
import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ReadScope, readScope } from '@/lib/server/access/request-context';
import { readFacts } from '@/lib/server/agui/post-agui';
import { readActivity } from '@/lib/server/queries/read-activity';
import { readAgent, readAgents, readLogAgent, readParked } from '@/lib/server/queries/read-agents';
import { readDelivery } from '@/lib/server/queries/read-delivery';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { downloadLog, readLogComponents, readLogLevel, readLogLines } from '@/lib/server/queries/read-logs';
import { readObligations, readRequest, readSessionObligations } from '@/lib/server/queries/read-pending';
import { readAgentSessions, readSession, readSessionPage, readSessions } from '@/lib/server/queries/read-sessions';
import { readTask, readTaskOutput, readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript, readTurnAt } from '@/lib/server/queries/read-transcript';
import { AccessStage } from '../../support/access-stage';
import { type BusyAgent, busyAgent } from '../../support/busy-agent';

/** Reads of pages and routes, each for something outside the scope, without the path check in front. */
const PAGE = { after: null, limit: 10 };
const LINES = { filter: EVERY_LINE, place: { kind: 'newest' }, limit: 10 } as const;
const RUN = { runId: null, position: null };

const LISTS: Record<string, (sight: ReadScope) => Promise<unknown>> = {
  'the sessions': (sight) => readSessions(sight),
  'a page of the sessions': (sight) => readSessionPage(sight, PAGE),
  'the agents': (sight) => readAgents(sight, PAGE),
  'the inbox': (sight) => readInbox(sight, PAGE),
};

const OF_SESSION: Record<string, (sight: ReadScope, of: BusyAgent) => Promise<unknown>> = {
  'a session': (sight, { sessionId }) => readSession(sight, sessionId),
  'a transcript': (sight, { sessionId }) => readTranscript(sight, sessionId, { before: null, limit: 10 }),
  'what ran at a time': (sight, { sessionId }) => readTurnAt(sight, sessionId, 1_795_170_000_100),
  'the tasks of a session': (sight, { sessionId }) => readTasks(sight, sessionId),
  'a task': (sight, { sessionId, taskId }) => readTask(sight, sessionId, taskId),
  'the output of a task': (sight, { sessionId, taskId }) => readTaskOutput(sight, sessionId, taskId, RUN),
  'a request': (sight, { sessionId, requestId }) => readRequest(sight, sessionId, requestId),
  'the pending replies of a session': (sight, { sessionId }) => readSessionObligations(sight, sessionId),
  'what a session lacks': (sight, { sessionId }) => readDelivery(sight, sessionId),
  'the sessions of an agent': (sight, { agentId }) => readAgentSessions(sight, agentId, PAGE),
  'what AG-UI runs': (sight, { agentId, sessionId }) => orNull(readFacts(sight, agentId, sessionId)),
};

const OF_AGENT: Record<string, (sight: ReadScope, of: BusyAgent) => Promise<unknown>> = {
  'an agent': (sight, { agentId }) => readAgent(sight, agentId),
  'the pending replies of an agent': (sight, { agentId }) => readObligations(sight, agentId),
  'what is parked of an agent': (sight, { agentId }) =>
    readParked(sight, agentId, { ...PAGE, state: 'parked', after: 0 }),
};

const OF_LOG: Record<string, (sight: ReadScope, of: BusyAgent) => Promise<unknown>> = {
  'the agent of a log': (sight, { agentId }) => readLogAgent(sight, agentId),
  'the lines of a log': (sight, { agentId }) => readLogLines(sight, agentId, LINES),
  'the components of a log': (sight, { agentId }) => readLogComponents(sight, agentId),
  'the level of a log': async (sight, { agentId }) => {
    const level = await readLogLevel(sight, agentId);
    return level === null ? null : { ...level, of: agentId };
  },
  'a downloaded log': async (sight, { agentId }) => {
    const log = await downloadLog(sight, agentId, EVERY_LINE, '');
    return log === null ? null : new Response(log).text();
  },
};

/** Null for the error of an unknown id. */
async function orNull<Model>(reading: Promise<Model>): Promise<Model | null> {
  return reading.catch((error) => {
    if (error.code === 'not_found') return null;
    throw error;
  });
}

let stage: AccessStage;
let own: BusyAgent;
let foreign: BusyAgent;
beforeAll(async () => {
  stage = await AccessStage.start();
  own = await busyAgent(stage, 'a');
  foreign = await busyAgent(stage, 'b');
});
afterAll(() => stage.close());

const sight = (scope: Scope) => readScope(stage.parts.database, scope);
const agentScope = (): Scope => ({ kind: 'agents', ids: [own.agentId], prefixes: [] });
const sessionScope = (): Scope => ({ kind: 'session', sessionId: own.sessionId });
const logScope = (): Scope => ({ kind: 'log', agentId: own.agentId });

/** True if a model contains anything of agent `a` or `b`: all its ids and texts end in its letter. */
const says = (model: unknown, letter: string) => new RegExp(`(-| of )${letter}\\b`).test(JSON.stringify(model));

describe.each(Object.entries(LISTS))('%s', (_, read) => {
  test('lists only rows in the scope', async () => {
    const whole = await read(sight(EVERYTHING));
    expect([says(whole, 'a'), says(whole, 'b')]).toEqual([true, true]);
    const scoped = await read(sight(agentScope()));
    expect([says(scoped, 'a'), says(scoped, 'b')]).toEqual([true, false]);
    for (const scope of [sessionScope(), logScope()]) expect(says(await read(sight(scope)), 'b')).toBe(false);
  });
});

describe.each(Object.entries({ ...OF_SESSION, ...OF_AGENT, ...OF_LOG }))('%s', (_, read) => {
  test('reveals nothing outside the scope', async () => {
    expect(says(await read(sight(EVERYTHING), foreign), 'b')).toBe(true);
    for (const scope of [agentScope(), sessionScope(), logScope()]) {
      expect(says(await read(sight(scope), foreign), 'b')).toBe(false);
    }
  });

  test('returns rows in the scope', async () => {
    const [scoped, whole] = [await read(sight(agentScope()), own), await read(sight(EVERYTHING), own)];
    // each sees the newest position in its scope
    expect(scoped).toEqual(typeof whole === 'string' ? whole : { ...(whole as object), position: expect.anything() });
  });
});

test.each(Object.entries({ ...OF_AGENT, ...OF_LOG }))('a reader of one session does not see %s', async (_, read) => {
  expect(says(await read(sight(sessionScope()), own), 'a')).toBe(false);
});

test.each(Object.entries({ ...OF_SESSION, ...OF_AGENT }))('a reader of one log does not see %s', async (_, read) => {
  expect(says(await read(sight(logScope()), own), 'a')).toBe(false);
});

test('activity counts agents in the scope only', async () => {
  const count = async (scope: Scope) => {
    const { events } = await readActivity(sight(scope), Date.now(), 60);
    return events.reduce((sum, one) => sum + one, 0);
  };
  // both agents did the same
  expect(await count(agentScope())).toBeGreaterThan(0);
  expect(await count(EVERYTHING)).toBe(2 * (await count(agentScope())));
  for (const scope of [sessionScope(), logScope()]) expect(await count(scope)).toBe(0);
});

test('a reader of one session does not see its agent’s outboxes of other sessions', async () => {
  const lacks = (scope: Scope) => readDelivery(sight(scope), own.sessionId);
  expect((await lacks(agentScope()))?.producers).not.toEqual([]);
  expect(await lacks(sessionScope())).toMatchObject({ producers: [], waiting: null, unnamedCount: 0 });
});
