import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command, CommandResponse } from '@interlude/protocol/commands';
import { NOTHING_OPEN, workAfter } from '@interlude/protocol/lifecycle/open-session';
import type {
  AgentDetail,
  AgentSummary,
  SessionDetail,
  TaskList,
  TaskOutputDetail,
  TranscriptPage,
} from '@interlude/protocol/read-models';
import { RUNNER_VERSION } from '@interlude/runner/host/own-program.mjs';
import { RunnerHost, type RunnerHostOptions } from '@interlude/runner/host/runner-host';
import { openWorkCursor } from '@interlude/runner/host/session-state';
import type { Source, SourceContext } from '@interlude/runner/host/source';
import { endSessionHandler } from '@interlude/runner/host/source-commands';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { LocalDashboard } from '../support/local-dashboard';
import { messages } from '../support/operator';
import { tempDir } from '../support/temp-dir';
import { WAIT_MS } from '../support/timeouts';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

let agents = 0;
const NOT_BEGUN = { state: 'failed' as const, reason: 'it has not begun' };

/** A runner around an agent that repeats each message. */
async function repeater(
  sessionId?: string,
  more: Partial<RunnerHostOptions> = {},
  only?: null,
  verbs: Partial<Source> = {},
) {
  agents += 1;
  const agentId = `repeater-${agents}`;
  const session = sessionId ?? `repeated-${agents}`;
  const folder = await tempDir();
  const commands: Command[] = [];
  const over: string[] = [];
  let around: SourceContext | null = null;
  let closedWith: number | null = null;
  let closedFor: string | null = null;
  const emit = (events: AgUiEvent[]) =>
    around?.emit(
      session,
      events.map((event) => ({ occurredAt: Date.now(), event })),
    );
  const source: Source = {
    sessions: [
      {
        sessionId: session,
        process: { state: 'running', pid: 4711, exitCode: null },
        provider: 'Repeater 2.0',
        pendingMessages: 0,
        attachments: [],
      },
    ],
    start: async () => {
      await emit([{ type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'Poll' } }]);
    },
    deliver: async (command) => {
      commands.push(command);
      const { messageId, text } = command.body;
      const about = {
        threadId: session,
        runId: `run-${messageId}`,
        metadata: { interlude: { userMessageIds: [messageId] } },
      };
      void emit([
        { type: 'RUN_STARTED', ...about },
        { type: 'TEXT_MESSAGE_START', messageId: `reply-${messageId}`, role: 'assistant' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: `reply-${messageId}`, delta: `You said: ${text}` },
        { type: 'TEXT_MESSAGE_END', messageId: `reply-${messageId}` },
        { type: 'RUN_FINISHED', ...about },
      ]);
      return { state: 'delivered' };
    },
    ...verbs,
    refusals: { interrupt: 'it only repeats' },
    end: async (...args) => (around === null ? NOT_BEGUN : await endSessionHandler(around)(...args)),
    close: async (deadlineMs, reason) => {
      closedWith = deadlineMs;
      closedFor = reason;
      void emit([{ type: 'CUSTOM', name: 'session:ended', value: { reason: 'it was closed' } }]);
    },
  };
  const host = await RunnerHost.open({
    about: { kind: 'repeater', cwd: '/project' },
    journal: 'repeater',
    meanwhile: 'the agent continues',
    openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
    ...{ endpoint: dashboard.endpoint, dataDir: folder, level: undefined },
    runnerId: `runner-${agents}`,
    ...more,
  });
  host.stopSignal.addEventListener('abort', () => over.push(host.stopSignal.reason));
  const { outbox, logger } = host;
  let isClosed = false;
  const close = async (flushMs = WAIT_MS) => {
    if (isClosed) return { waiting: 0 };
    isClosed = true;
    return await host.close(0, flushMs);
  };
  onTestFinished(async () => void (await close(2_000)));
  await host.start(
    (context) => {
      around = context;
      return source;
    },
    only === null ? null : session,
  );
  return {
    host,
    agentId,
    sessionId: session,
    folder,
    outbox,
    commands,
    over,
    logger,
    emit,
    close,
    closedWith: () => closedWith,
    closedFor: () => closedFor,
  };
}

const eventually = (look: () => unknown) => expect.poll(look, { interval: 20 });
const summary = async (agentId: string) =>
  (await dashboard.request<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent;
const session = async (id: string) => (await dashboard.request<SessionDetail>(`/sessions/${id}`)).session;
const transcript = async (id: string) => (await dashboard.request<TranscriptPage>(`/sessions/${id}/transcript`)).turns;

describe('a status report', () => {
  test('omits a session that ended while it was made', async () => {
    const [agentId, id, folder] = ['reported', 'reported-session', await tempDir()];
    let around: SourceContext | null = null;
    let [hasChanged, isEnding, isOver] = [false, false, false];
    const source: Source = {
      get sessions() {
        if (isEnding) {
          isEnding = false;
          // After the last check, and before the disk has answered.
          queueMicrotask(() => {
            isOver = true;
            const event = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'it was left' } };
            void around?.emit(id, [{ occurredAt: Date.now(), event }]);
          });
        }
        const process = { state: 'running', pid: 4711, exitCode: null } as const;
        return isOver ? [] : [{ sessionId: id, process, attachments: [], wakeable: hasChanged }];
      },
      start: async () => {},
      close: async () => {},
    };
    const host = await RunnerHost.open({
      ...{ about: { kind: 'repeater' }, journal: 'repeater', meanwhile: 'the agent continues' },
      openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
      ...{ endpoint: dashboard.endpoint, dataDir: folder, level: undefined },
    });
    let closed: Promise<unknown> | null = null;
    const close = () => {
      closed ??= host.close(0, WAIT_MS);
      return closed;
    };
    onTestFinished(async () => void (await close()));
    await host.start((context) => {
      around = context;
      return source;
    });
    [hasChanged, isEnding] = [true, true];
    (around as SourceContext | null)?.changed();
    await eventually(() => isOver).toBe(true);
    // Sends a last report.
    await close();
    expect((await session(id)).state).toBe('exited');
  });
});

describe('a runner', () => {
  test('registers its session before any message, and reports its state', async () => {
    const { agentId, sessionId, outbox, close, closedWith, closedFor } = await repeater();
    await outbox.idle();
    expect(await session(sessionId)).toMatchObject({ agentId, turnCount: 0, title: null });
    await eventually(async () => (await summary(agentId)).connection).toBe('connected');
    await eventually(async () => (await summary(agentId)).status).toMatchObject({
      kind: 'repeater',
      cwd: '/project',
      versions: { runner: RUNNER_VERSION, protocol: '1', provider: 'Repeater 2.0' },
      process: { state: 'running', pid: 4711, exitCode: null },
      tasks: [{ id: 't1', description: 'Poll' }],
      outbox: { poisoned: 0, lost: 0 },
      logLevel: 'info',
    });
    expect(await close()).toEqual({ waiting: 0 });
    expect([closedWith(), closedFor()]).toEqual([0, 'the runner was stopped']);
    expect(await session(sessionId)).toMatchObject({ state: 'exited', stateReason: 'it was closed' });
    await eventually(async () => (await summary(agentId)).connection).toBe('away');
  });

  test('delivers a message to its agent and the reply back, through an outage of the dashboard', async () => {
    const { sessionId, outbox } = await repeater();
    await outbox.idle();
    await dashboard.request(`/sessions/${sessionId}/messages`, { text: 'one', clientId: 'a' });
    await eventually(async () => messages(await transcript(sessionId), 'assistant').map(({ text }) => text)).toEqual([
      'You said: one',
    ]);
    await dashboard.down();
    await dashboard.up();
    await dashboard.request(`/sessions/${sessionId}/messages`, { text: 'two', clientId: 'b' });
    await eventually(async () => messages(await transcript(sessionId), 'assistant').map(({ text }) => text)).toEqual([
      'You said: one',
      'You said: two',
    ]);
    const [one] = messages(await transcript(sessionId), 'user');
    expect(one?.delivery).toBe('seen');
  });

  test('sends its log to the dashboard at the requested level', async () => {
    const { agentId, logger, outbox } = await repeater();
    logger.child('test').debug('too fine to be told');
    logger.child('test').info('worth telling');
    await outbox.idle();
    const lines = async () =>
      (await dashboard.request<{ lines: { component: string; message: string }[] }>(`/agents/${agentId}/logs`)).lines
        .filter(({ component }) => component === 'test')
        .map(({ message }) => message);
    await eventually(lines).toEqual(['worth telling']);
    const headers = { authorization: `Bearer ${dashboard.token}`, 'content-type': 'application/json' };
    const address = `${dashboard.url}/api/v1/agents/${agentId}/log-level`;
    await fetch(address, { method: 'PUT', headers, body: JSON.stringify({ level: 'debug' }) });
    await eventually(() => logger.level.get()).toBe('debug');
    logger.child('test').debug('fine, and told');
    await eventually(lines).toEqual(['worth telling', 'fine, and told']);
    await eventually(async () => (await summary(agentId)).status?.logLevel).toBe('debug');
  });

  test.each(['info', 'error'])(
    'logs the share of exploratory tool use at the end of its session, at level %s',
    async (level) => {
      const { agentId, sessionId, emit, close } = await repeater(undefined, { level });
      const calls = ['Read', 'Grep', 'Bash'].map((name) => ({ toolCallId: name, toolCallName: name }));
      await emit(calls.map((call) => ({ type: 'TOOL_CALL_START', ...call })));
      await close();
      const { insights } = await dashboard.request<AgentDetail>(`/agents/${agentId}`);
      expect(insights).toMatchObject([
        { signal: 'context_ratio', value: 0.667, outcome: 'ended', sessionId, isFailure: false },
      ]);
      expect(insights[0]?.detail).toMatch(/^2 of 3 tool calls .* end: it was closed$/);
    },
  );

  test('logs no such share when it is turned off', async () => {
    const { agentId, emit, close } = await repeater(undefined, { logsContextRatio: false });
    await emit([{ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Read' }]);
    await close();
    expect((await dashboard.request<AgentDetail>(`/agents/${agentId}`)).insights).toEqual([]);
  });

  test('delivers the starter’s prompt once, though the dashboard is away', async () => {
    const { host, sessionId, outbox, commands } = await repeater();
    await outbox.idle();
    await dashboard.down();
    await host.sendFirstMessage({ sessionId, text: 'Begin.' });
    await host.sendFirstMessage({ sessionId, text: 'Begin.' });
    expect(commands).toHaveLength(1);
    await dashboard.up();
    await eventually(async () => messages(await transcript(sessionId), 'assistant').map(({ text }) => text)).toEqual([
      'You said: Begin.',
    ]);
    expect(messages(await transcript(sessionId), 'user').map(({ text, name }) => [text, name])).toEqual([
      ['Begin.', 'operator'],
    ]);
    await eventually(async () => (await session(sessionId)).owedCount).toBe(0);
  });

  test('names the session in each log line when it has several', async () => {
    const { agentId, emit, sessionId, outbox } = await repeater(undefined, { hasManySessions: true });
    await emit([{ type: 'RUN_STARTED', threadId: sessionId, runId: 'r1' }]);
    await emit([{ type: 'RUN_FINISHED', threadId: sessionId, runId: 'r1' }]);
    await outbox.idle();
    const lines = async () =>
      (await dashboard.request<{ lines: { component: string; message: string }[] }>(`/agents/${agentId}/logs`)).lines
        .filter(({ component }) => component === 'turns' || component === 'tasks')
        .map(({ message }) => message.replace(/after [\d.]+ s/, 'after a while'));
    await eventually(lines).toEqual([
      `task t1 “Poll” started [session ${sessionId}]`,
      `turn started: answering a message [session ${sessionId}]`,
      `turn ended after a while [session ${sessionId}]`,
    ]);
  });

  test('exits cleanly when a person ends its session, after reporting it', async () => {
    const { host, agentId, sessionId, outbox, over, close, closedFor } = await repeater();
    await outbox.idle();
    await eventually(async () => (await summary(agentId)).status?.takes).toContain('session.end');
    const { commandId } = await dashboard.request<CommandResponse>(`/sessions/${sessionId}/end`, {});
    await eventually(() => over).toEqual(['ended from the dashboard']);
    expect(host.failure).toBeNull();
    expect(await close()).toEqual({ waiting: 0 });
    expect(closedFor()).toBe('ended from the dashboard');
    expect(await session(sessionId)).toMatchObject({ state: 'exited' });
    const items = (await transcript(sessionId)).flatMap(({ items }) => items);
    expect(items).toContainEqual(
      expect.objectContaining({ id: `command:${commandId}`, text: 'The runner began to end the session.' }),
    );
  });

  test('exits when a newer runner of its agent takes over', async () => {
    const { agentId, over, outbox, close, closedFor } = await repeater();
    await outbox.idle();
    await eventually(async () => (await summary(agentId)).connection).toBe('connected');
    const query = new URLSearchParams({ runner: 'newer', startedAt: String(Date.now() + 60_000) });
    const newer = await fetch(`${dashboard.url}/api/v1/agents/${agentId}/commands?${query}`, {
      headers: { authorization: `Bearer ${dashboard.token}` },
    });
    await eventually(() => over).toEqual([expect.stringContaining('has taken over')]);
    await close();
    expect(closedFor()).toBe('another runner of this agent has taken over');
    await newer.body?.cancel();
  });
});

test('a session is unknown with its task lost while its agent is unreachable, and continues with it afterwards', async () => {
  let answer: string | null = null;
  const lost: string[] = [];
  const { sessionId } = await repeater(undefined, { reach: { everyMs: 5, limitMs: 10 } }, undefined, {
    reach: async () => answer,
    lost: async (reason) => void lost.push(reason),
  });
  const tasks = async () => (await dashboard.request<TaskList>(`/sessions/${sessionId}/tasks`)).tasks;
  await eventually(async () => (await tasks()).map(({ status }) => status)).toEqual(['running']);
  answer = 'no answer at there';
  await eventually(async () => (await tasks()).map(({ status }) => status)).toEqual(['lost']);
  const away = { isUnreachable: true, reason: 'no answer at there', last: 'waiting-on-background' };
  expect(await session(sessionId)).toMatchObject({ state: 'unknown', away });
  await eventually(() => lost).toEqual(['no answer at there']);
  answer = null;
  await eventually(async () => (await tasks()).map(({ status }) => status)).toEqual(['running']);
  expect(await session(sessionId)).toMatchObject({ away: null });
});

test('items left open by a killed runner are unconfirmed until the agent has answered', async () => {
  const [agentId, id, folder] = ['left-open', 'left-open-session', await tempDir()];
  const [file, occurredAt] = [join(folder, 'outbox.db'), Date.now()];
  const event = { type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'Poll' } };
  const left = await Outbox.open(file, { agentId, endpoint: dashboard.endpoint });
  const open = workAfter(NOTHING_OPEN, [{ event }]);
  await left.enqueue([{ kind: 'event', agentId, sessionId: id, occurredAt, event }], [openWorkCursor(id, open)]);
  await left.idle();
  await left.stop();
  let answer: string | null = 'no answer at there';
  const host = await RunnerHost.open({
    ...{ about: { kind: 'repeater' }, meanwhile: 'the agent continues', reach: { everyMs: 20 } },
    openOutbox: (listeners) => Outbox.open(file, { agentId, ...listeners }),
    ...{ endpoint: dashboard.endpoint, dataDir: folder, level: undefined },
  });
  onTestFinished(async () => void (await host.close(0, 2_000)));
  const sessions = [{ sessionId: id, attachments: [] }];
  const reach = async () => {
    // A dead address may take its time.
    await pause(200);
    return answer;
  };
  await host.start(() => ({ sessions, start: async () => {}, close: async () => {}, reach }));
  await host.outbox.idle();
  const away = { isUnreachable: true, last: 'waiting-on-background' };
  expect(await session(id)).toMatchObject({ state: 'unknown', away, runningTaskCount: 0 });
  answer = null;
  await eventually(() => session(id)).toMatchObject({
    state: 'waiting-on-background',
    away: null,
    runningTaskCount: 1,
  });
});

describe('a session that belongs to another agent', () => {
  const refused = async (agentId: string) => {
    const { quarantine } = await dashboard.request<AgentDetail>(`/agents/${agentId}`);
    return quarantine.filter(({ code }) => code === 'session_of_another_agent');
  };

  test('stops a runner without any other session with one sentence, and its rejection causes no report', async () => {
    const owner = await repeater();
    await owner.outbox.idle();
    const { host, agentId, over, close } = await repeater(owner.sessionId);
    await eventually(() => over).toHaveLength(1);
    expect(host.failure).toBe(
      `session ${owner.sessionId} belongs to another agent; choose another with --session, or name its agent with --agent`,
    );
    await close();
    const kinds = (await refused(agentId)).map(({ record }) => (record as { kind: string }).kind);
    // One at the start, and perhaps one when its stream opens: the rejection causes none.
    expect(kinds.filter((kind) => kind === 'status').length).toBeLessThanOrEqual(2);
    expect(kinds.length).toBeLessThan(10);
  });

  test('exits with 1 and that sentence', async () => {
    const owner = await repeater();
    await owner.outbox.idle();
    const data = { INTERLUDE_DATA_DIR: join(await tempDir(), 'data'), INTERLUDE_TOKEN: dashboard.token };
    const args = ['--url', 'http://127.0.0.1:9/', '--dashboard', dashboard.url, '--session', owner.sessionId];
    const end = await callCli(['runner', 'agui', '--agent', 'an-intruder', ...args], data);
    expect([end.exitCode, end.stdout]).toEqual([1, '']);
    expect(end.stderr.trim().split('\n')).toEqual([
      'interlude: no answer at http://127.0.0.1:9/: ECONNREFUSED; retrying',
      expect.stringMatching(/^interlude: session \S+ belongs to another agent; choose another with --session, /),
    ]);
  });

  test('is skipped by a runner that follows several', async () => {
    const owner = await repeater();
    await owner.outbox.idle();
    const { agentId, outbox, over } = await repeater(owner.sessionId, {}, null);
    await eventually(async () => (await refused(agentId)).length).toBeGreaterThan(0);
    await eventually(async () => (await summary(agentId)).connection).toBe('connected');
    await outbox.idle();
    const before = (await refused(agentId)).length;
    // Two reports, neither caused by the rejection.
    for (const level of ['debug', 'info']) {
      await dashboard.request(`/agents/${agentId}/log-level`, { level }, 'PUT');
      await eventually(async () => (await summary(agentId)).status?.logLevel).toBe(level);
    }
    expect((await refused(agentId)).length).toBe(before);
    expect(over).toEqual([]);
  });

  test('stops a runner that follows several when it has found no session of its own for a while', async () => {
    const owner = await repeater();
    await owner.outbox.idle();
    const { agentId, host, over } = await repeater(owner.sessionId, {}, null);
    await eventually(async () => (await refused(agentId)).length).toBeGreaterThan(0);
    const level = (to: string) => dashboard.request(`/agents/${agentId}/log-level`, { level: to }, 'PUT');
    await level('debug');
    await eventually(async () => (await summary(agentId)).status?.logLevel).toBe('debug');
    expect(over).toEqual([]);
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 20_000);
    onTestFinished(() => clock.mockRestore());
    await level('info');
    await eventually(() => over).toHaveLength(1);
    expect(host.failure).toBe(
      'all of its sessions belong to other agents; stop their runner first, or name its agent with --agent',
    );
  });
});

describe('task output', () => {
  const kept = async (sessionId: string) => {
    const detail = await dashboard.request<TaskOutputDetail>(`/sessions/${sessionId}/tasks/t1/output`);
    return { ...detail, text: detail.output?.parts.map(({ text }) => text).join('') ?? '' };
  };

  test('reaches the server during the task, without secrets, and is complete once the runner has exited', async () => {
    const { emit, folder, sessionId, close } = await repeater();
    const file = join(folder, 't1.output');
    await emit([{ type: 'CUSTOM', name: 'task:updated', value: { task_id: 't1', output_file: file } }]);
    await writeFile(file, `begins\npassword=${'hunter2'.repeat(3)}\n`);
    await eventually(async () => (await kept(sessionId)).text).toContain('begins');
    expect((await kept(sessionId)).text).toMatch(/password=\[redacted: .+\]\n$/);
    expect(await kept(sessionId)).toMatchObject({ output: { redacted: 1, hasEnded: false } });
    await appendFile(file, 'never ended a line');
    await close();
    expect(await kept(sessionId)).toMatchObject({ output: { hasEnded: true } });
    expect((await kept(sessionId)).text).toContain('never ended a line');
    const { tasks } = await dashboard.request<TaskList>(`/sessions/${sessionId}/tasks`);
    expect(tasks).toMatchObject([{ id: 't1', outputFile: file, hasOutput: true }]);
  });
});

describe('interlude runner', () => {
  const run = async (...args: string[]) => {
    const env = { INTERLUDE_DATA_DIR: join(await tempDir(), 'data'), INTERLUDE_URL: dashboard.url };
    return await callCli(['runner', ...args], env);
  };

  test.each([
    [['claude'], 3, 'npm install --prefix /'],
    [['claude', '--sdk', 'nowhere'], 3, `${join(process.cwd(), 'nowhere')} --ignore-scripts `],
    [['claude', '--permission-mode', 'yolo'], 2, '--permission-mode must be one of default,'],
    [['claude', '--answer-within', 'soon'], 2, '--answer-within must be a number of seconds'],
    [['claude', '--session', '..'], 2, '--session must be an id of 1 to 256 characters'],
    [['hooks', '--agent', '.'], 2, '--agent must be an id of 1 to 256 characters'],
    [['claude', '--loud'], 2, "Unknown option '--loud'"],
    [['claude', '--url', 'ftp://there'], 2, 'not an http address'],
    [['claude', '--cwd', 'nowhere-at-all'], 1, 'nowhere-at-all is not a folder'],
    [['parrot'], 2, 'unknown kind "parrot"'],
    [[], 2, 'name a kind of agent'],
  ])('%j exits with its code and one line with what to do', async (args, exitCode, words) => {
    const end = await run(...args);
    expect(end.exitCode).toBe(exitCode);
    expect(end.stderr).toContain(words);
    expect(end.stderr.trim().split('\n')).toHaveLength(1);
  });

  test('prints its options for --help', async () => {
    const end = await run('claude', '--help');
    expect(end).toMatchObject({ exitCode: 0, stderr: '' });
    expect(end.stdout).toContain('npx interlude runner claude [options]');
  });
});
