import { join } from 'node:path';
import type { InboxList } from '@interlude/protocol/inbox';
import type { AgentSummary, SessionDetail, TaskList } from '@interlude/protocol/read-models';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import type { Source, SourceContext } from '@interlude/runner/host/source';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { AgentApiSource } from '@interlude/runner/sources/agentapi/agentapi-source';
import { AgUiSource } from '@interlude/runner/sources/agui/agui-source';
import { connectSocket } from '@interlude/runner/sources/codex/app-server';
import { CodexSource } from '@interlude/runner/sources/codex/codex-source';
import { OpencodeSource } from '@interlude/runner/sources/opencode/opencode-source';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AgentApiEmulator } from '../support/agentapi-server';
import { AmbientServer, ambientTaskStarted } from '../support/agui-stage';
import { CodexAppServer } from '../support/codex-app-server';
import { LocalDashboard } from '../support/local-dashboard';
import { FakeOpencodeServer } from '../support/opencode-server';
import { notices, Operator } from '../support/operator';
import { tempDir } from '../support/temp-dir';

/** Real servers on this machine. Only the allowed outages are shorter than in production. */
const REACH = { everyMs: 20, limitMs: 100 };
/** A server that is exiting may still accept a connection and close it. */
const GONE = /ECONNREFUSED|it closes each connection/;

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

let agents = 0;
const eventually = (look: () => unknown) => expect.poll(look, { interval: 20 });

/** A runner of a source, with its sessions in the dashboard. */
async function running(open: (around: SourceContext) => Source | Promise<Source>, folder?: string) {
  const agentId = folder === undefined ? `attached-${++agents}` : `attached-${agents}`;
  const dataDir = folder ?? (await tempDir());
  const lines: string[] = [];
  const host = await RunnerHost.open({
    ...{ about: { kind: 'attached', agentGoesOn: true }, meanwhile: 'the agent continues', dataDir, level: undefined },
    openOutbox: (listeners) => Outbox.open(join(dataDir, 'outbox.db'), { agentId, ...listeners }),
    ...{ endpoint: dashboard.endpoint, reach: REACH, print: (line: string) => void lines.push(line) },
  });
  let closed: Promise<unknown> | null = null;
  const close = () => {
    closed ??= host.close(0, 2_000);
    return closed;
  };
  onTestFinished(async () => void (await close()));
  await host.start(open);
  return { agentId, dataDir, lines, close };
}

const session = async (id: string) => (await dashboard.request<SessionDetail>(`/sessions/${id}`)).session;
const tasks = async (id: string) => (await dashboard.request<TaskList>(`/sessions/${id}/tasks`)).tasks;
const agent = async (id: string) => (await dashboard.request<{ agent: AgentSummary }>(`/agents/${id}`)).agent;
const items = async (agentId: string) => {
  const inbox = await dashboard.request<InboxList>('/inbox');
  return inbox.items.filter((item) => item.agentId === agentId).map(({ kind, sessionId }) => [kind, sessionId]);
};

/** Expects the session of a lost agent to show nothing in progress. */
async function expectLost(sessionId: string, agentId: string, reason: RegExp) {
  await eventually(async () => (await session(sessionId)).away).toMatchObject({ isUnreachable: true });
  await eventually(async () => (await session(sessionId)).openTurnId).toBeNull();
  await eventually(async () => (await session(sessionId)).runningTaskCount).toBe(0);
  const { state, stateReason, away } = await session(sessionId);
  expect([state, away?.reason]).toEqual(['unknown', expect.stringMatching(reason)]);
  expect(stateReason).toBe(`the agent is unreachable: ${away?.reason}`);
  expect(Math.abs(Date.now() - (away?.since ?? 0))).toBeLessThan(60_000);
  await eventually(() => items(agentId)).not.toEqual([]);
}

describe('an AG-UI server that is killed', () => {
  test('a killed AG-UI server loses its running task, shows since when, and continues when it returns', async () => {
    const server = await AmbientServer.start();
    const sessionId = 'agui-between';
    const { agentId, lines } = await running(
      (context) =>
        new AgUiSource({
          ...{ context: context, url: server.url, sessionId, history: 'all', headers: {}, random: () => 0 },
          waits: { longestMs: 20, missingMs: 50 },
        }),
    );
    await eventually(() => server.listeners).toBe(1);
    server.between(ambientTaskStarted('t1', 'Poll'));
    await eventually(async () => (await tasks(sessionId)).map(({ status }) => status)).toEqual(['running']);
    await server.stop();
    await expectLost(sessionId, agentId, /^no answer at http:.*(?:ECONNREFUSED|it closes each connection)$/);
    expect(await tasks(sessionId)).toMatchObject([{ status: 'lost', error: expect.stringContaining('unreachable') }]);
    expect(await items(agentId)).toEqual([['lost-contact', sessionId]]);
    expect(lines).toEqual([expect.stringMatching(/^no answer at .*; retrying$/)]);
    await server.comeBack();
    await eventually(async () => (await session(sessionId)).away).toBeNull();
    await eventually(() => items(agentId)).toEqual([]);
    expect(lines.at(-1)).toBe('the agent is reachable again');
    expect(notices(await new Operator(dashboard, sessionId).turns()).at(-1)).toMatch(
      /^The agent is reachable again after /,
    );
    await eventually(() => server.listeners).toBe(1);
    server.between({ type: 'RUN_STARTED', threadId: sessionId, runId: 'woken' });
    await eventually(async () => (await session(sessionId)).state).toBe('working');
    server.between({ type: 'RUN_FINISHED', threadId: sessionId, runId: 'woken' });
    await eventually(async () => (await session(sessionId)).state).toBe('idle');
  });

  test('resumes a task that it still lists as running when it returns', async () => {
    const server = await AmbientServer.start();
    server.tasks = [{ task_id: 't1', description: 'Poll', status: 'running' }];
    const sessionId = 'agui-listed';
    const { agentId } = await running(
      (context) =>
        new AgUiSource({
          ...{ context: context, url: server.url, sessionId, history: 'all', headers: {}, random: () => 0 },
          waits: { longestMs: 20, missingMs: 50 },
        }),
    );
    await eventually(async () => (await tasks(sessionId)).map(({ status }) => status)).toEqual(['running']);
    await server.stop();
    await expectLost(sessionId, agentId, GONE);
    expect(await tasks(sessionId)).toMatchObject([{ status: 'lost', presumed: 'unlisted' }]);
    await server.comeBack();
    await eventually(async () => (await tasks(sessionId)).map(({ status }) => status)).toEqual(['running']);
    await eventually(async () => (await session(sessionId)).state).toBe('waiting-on-background');
    expect(await items(agentId)).toEqual([]);
  });

  test('creates one inbox item while idle, which the next runner neither repeats nor loses', async () => {
    const server = await AmbientServer.start();
    const sessionId = 'agui-idle';
    const open = (context: SourceContext) =>
      new AgUiSource({
        ...{ context: context, url: server.url, sessionId, history: 'all', headers: {}, random: () => 0 },
        waits: { longestMs: 20, missingMs: 50 },
      });
    const first = await running(open);
    await eventually(() => server.listeners).toBe(1);
    await server.stop();
    await expectLost(sessionId, first.agentId, GONE);
    expect(await items(first.agentId)).toEqual([['lost-contact', null]]);
    const { since } = (await session(sessionId)).away ?? {};
    await first.close();
    await running(open, first.dataDir);
    await eventually(async () => (await agent(first.agentId)).connection).toBe('connected');
    await eventually(async () => (await session(sessionId)).away).toMatchObject({ isUnreachable: true });
    expect(Math.abs(((await session(sessionId)).away?.since ?? 0) - (since ?? 0))).toBeLessThan(1_000);
    await server.comeBack();
    await eventually(async () => (await session(sessionId)).away).toBeNull();
    await eventually(() => items(first.agentId)).toEqual([]);
  });
});

test('an AgentAPI server that is killed in a turn fails it, and is followed again', async () => {
  const server = await AgentApiEmulator.start();
  server.replies('Welcome');
  const sessionId = 'agentapi-killed';
  const { agentId } = await running(
    (context) =>
      new AgentApiSource({
        ...{ context: context, url: server.url, sessionId, headers: {}, random: () => 0 },
        waits: { longestMs: 20, brokenPollMs: 20, settleMs: 60 },
      }),
  );
  const operator = new Operator(dashboard, sessionId);
  await operator.send('Build it');
  await eventually(async () => (await session(sessionId)).openTurnId).not.toBeNull();
  await server.stop();
  await expectLost(sessionId, agentId, GONE);
  expect(await items(agentId)).toEqual([['lost-contact', sessionId]]);
  expect((await operator.turns()).map(({ state }) => state)).toContain('failed');
  await server.listen();
  await eventually(async () => (await session(sessionId)).away).toBeNull();
  server.replies('Here.');
  await eventually(async () => (await session(sessionId)).state).toBe('idle');
});

test('an OpenCode server that is killed in a turn fails it with its subagent, and is followed again', async () => {
  const server = new FakeOpencodeServer();
  await server.start();
  onTestFinished(() => server.kill().catch(() => undefined));
  const sessionId = server.session();
  let runs = 0;
  const { agentId } = await running((context) => {
    const address = { url: server.url, user: 'opencode', password: null };
    return OpencodeSource.open({ address, shownUrl: server.url, context: context, newRunId: () => `oc${++runs}` });
  });
  await eventually(async () => (await agent(agentId)).status).toMatchObject({ process: { state: 'running' } });
  const message = server.begin(sessionId, server.user(sessionId, 'Go'));
  const child = server.session({ parentID: sessionId, title: 'Look (@general subagent)', agent: 'general' });
  const state = { status: 'running', input: { description: 'Look' }, metadata: { sessionId: child } };
  server.part(sessionId, message, { type: 'tool', tool: 'task', callID: 'c1', state });
  server.busy.add(child);
  await eventually(async () => (await session(sessionId)).runningTaskCount).toBe(1);
  await server.kill();
  await expectLost(sessionId, agentId, GONE);
  expect(await items(agentId)).toEqual([['lost-contact', sessionId]]);
  await server.start();
  await eventually(async () => (await session(sessionId)).away).toBeNull();
  server.turn(sessionId, 'Again', 'Done.');
  await eventually(async () => (await session(sessionId)).state).toBe('idle');
});

test('a Codex app-server that is killed in a turn fails it, and is followed again', async () => {
  const server = new CodexAppServer();
  const { path, stop } = await server.listen();
  const thread = server.newThread();
  const { agentId } = await running(
    (around) =>
      new CodexSource({
        context: around,
        own: null,
        open: (listener) => connectSocket(path, listener),
        random: () => 0,
      }),
  );
  await eventually(() => thread.subscribers.size).toBe(1);
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await eventually(async () => (await session(thread.id)).state).toBe('working');
  server.die();
  await stop();
  await expectLost(thread.id, agentId, /Codex/);
  await server.listen(path);
  await eventually(async () => (await session(thread.id)).away).toBeNull();
});
