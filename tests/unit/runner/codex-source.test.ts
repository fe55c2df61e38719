import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { AgUiEvent, RequestOption } from '@interlude/protocol/ag-ui';
import { fieldsOf } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import type { CommandOf } from '@interlude/runner/host/source';
import type { TransportListener } from '@interlude/runner/sources/codex/app-server';
import { connectSocket, probeSocket, spawnAppServer } from '@interlude/runner/sources/codex/app-server';
import { CodexSource, type CodexSourceOptions } from '@interlude/runner/sources/codex/codex-source';
import { kind } from '@interlude/runner/sources/codex/kind';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { CodexAppServer } from '../../support/codex-app-server';
import { type SourceStage, testSourceContract } from '../../support/source-contract';
import { tempDir } from '../../support/temp-dir';

const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });
const until = (look: () => unknown) => settled(look).toBeTruthy();

/** Codex as a child of the runner: one process per source, threads stay on disk. */
async function child(): Promise<SourceStage> {
  const server = new CodexAppServer();
  const command = await server.program();
  let opened = 0;
  let around: MemorySourceContext | null = null;
  return {
    open(surroundings) {
      opened += 1;
      around = surroundings;
      return ownSource(command, { context: surroundings });
    },
    async begin() {
      await until(() => server.requests.filter(({ method }) => method === 'initialize').length === opened);
      await until(() => server.threads.size > 0 && server.thread.subscribers.size > 0);
      server.beginTurn(server.thread);
      server.message(server.thread, 'Build it');
      server.says(server.thread, 'Building.');
      await until(() => around?.openWork('s').turn);
    },
    async finish() {
      if (server.thread.openTurn === null) return;
      server.endTurn(server.thread);
      await until(() => around?.openWork('s').turn === null);
    },
    heard: () => server.heard,
    features: kind.features,
  };
}

/** The operator's own Codex, which outlives the runner. */
async function shared(): Promise<SourceStage> {
  const server = new CodexAppServer();
  const { path } = await server.listen();
  const thread = server.newThread();
  let around: MemorySourceContext | null = null;
  return {
    open(surroundings) {
      around = surroundings;
      return sharedSource(path, { context: surroundings });
    },
    async begin() {
      await until(() => thread.subscribers.size > 0);
      server.beginTurn(thread);
      server.message(thread, 'Build it');
      server.says(thread, 'Building.');
      await until(() => around?.openWork(thread.id).turn);
    },
    async finish() {
      server.endTurn(thread);
      await until(() => around?.openWork(thread.id).turn === null);
    },
    goesOn: true,
    // Only threads that it started can be ended.
    sometimes: ['end'],
    features: kind.features,
  };
}

function ownSource(command: string, options: Partial<CodexSourceOptions> & { context: MemorySourceContext }) {
  const own = { sessionId: 's', cwd: process.cwd(), params: {} };
  const program = { command, cwd: process.cwd(), env: process.env };
  return new CodexSource({ own, open: (listener) => spawnAppServer(program, listener), ...options });
}

function sharedSource(path: string, options: Partial<CodexSourceOptions> & { context: MemorySourceContext }) {
  const [open, reach] = [(listener: TransportListener) => connectSocket(path, listener), () => probeSocket(path)];
  return new CodexSource({ own: null, open, reach, random: () => 0, ...options });
}

test('probeSocket tells whether a server listens', async () => {
  const path = join(await tempDir(), 'app-server.sock');
  expect(await probeSocket(path)).toBe(`no Codex listens on ${path}`);
  const server = createServer().listen(path);
  await once(server, 'listening');
  expect(await probeSocket(path)).toBeNull();
  server.close();
});

describe.each([
  ['that is a child', child],
  ['of the operator', shared],
])('a source of a Codex %s:', (_kind, stage) => {
  testSourceContract(stage);
});

/** A source at the operator's own Codex, with one thread. */
async function attached(options: Partial<CodexSourceOptions> = {}, before?: MemorySourceContext) {
  const server = new CodexAppServer();
  const { path, stop } = await server.listen();
  const thread = server.newThread();
  const connect = async (around: MemorySourceContext) => {
    const source = sharedSource(path, { ...options, context: around });
    onTestFinished(() => source.close(0, 'the test is over'));
    await source.start();
    await until(() => thread.subscribers.size > 0);
    return source;
  };
  const around = new MemorySourceContext(undefined, before);
  const source = await connect(around);
  await until(() => source.sessions.length === 1);
  return { server, thread, around, source, connect, path, stop };
}

const types = (around: MemorySourceContext) => around.events.map(({ type, name }) => String(name ?? type));
const named = (around: MemorySourceContext, name: string) =>
  around.events.filter((event) => event.name === name).map(({ value }) => fieldsOf(value));
const runs = (around: MemorySourceContext) => around.events.filter(({ type }) => type === 'RUN_STARTED');
const interlude = (event: AgUiEvent | undefined) => event?.metadata?.interlude;

function command<Type extends 'message' | 'task.wake' | 'wake-rule.set' | 'task.stop' | 'interrupt'>(
  type: Type,
  sessionId: string,
  body: CommandOf<Type>['body'],
  id = 'c1',
): CommandOf<Type> {
  return { id, type, sessionId, createdAt: 1, expiresAt: 2, body } as CommandOf<Type>;
}

function message(sessionId: string, text: string, messageId: string) {
  return command('message', sessionId, { messageId, text, from: { kind: 'person', id: 'operator' } }, messageId);
}

/** Answers the open request like a person at the dashboard. */
function decision(around: MemorySourceContext, body: object) {
  const opened = around.told.findLast(({ event }) => event.name === 'request:opened');
  const { request_id: requestId, tool_name: tool = null, input, options } = fieldsOf(opened?.event.value);
  const sessionId = opened?.sessionId ?? '';
  const position = '7' as never;
  const digest = requestDigest({
    ...{ sessionId, requestId: String(requestId), tool: tool as string | null, input, position },
    options: options as RequestOption[] | undefined,
  });
  const answered = { requestId: String(requestId), digest, openedPosition: position };
  const type = 'answers' in body ? 'question.answer' : 'permission.decision';
  const whole: unknown = { id: 'd1', type, sessionId, createdAt: 1, expiresAt: 2, body: { ...answered, ...body } };
  return whole as CommandOf<'permission.decision' | 'question.answer'>;
}

test('starts a turn for a message to an idle thread', async () => {
  const { server, thread, around, source } = await attached();
  expect(await source.deliver(message(thread.id, 'hello', 'm1'), false)).toEqual({ state: 'delivered' });
  await until(() => runs(around).length === 1);
  server.says(thread, 'Hi.');
  server.endTurn(thread);
  await until(() => types(around).includes('RUN_FINISHED'));
  expect(interlude(runs(around)[0])).toMatchObject({ turn: 'user', userMessageIds: ['m1'] });
  expect(around.events.filter(({ role }) => role === 'user')).toEqual([]);
  expect(around.events.find(({ role }) => role === 'assistant')?.metadata?.interlude?.replyTo).toEqual(['m1']);
  await settled(() => source.sessions[0]?.pendingMessages).toBe(0);
});

test('queues a message during a turn for its own turn', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => around.openWork(thread.id).turn);
  await source.deliver(message(thread.id, 'and test it', 'm1'), false);
  server.endTurn(thread);
  await until(() => runs(around).length === 2);
  expect(interlude(runs(around)[1])?.userMessageIds).toEqual(['m1']);
  expect(server.requests.some(({ method }) => method === 'turn/steer')).toBe(false);
});

test('starts a queued message after an interrupt', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => around.openWork(thread.id).turn);
  await source.deliver(message(thread.id, 'and test it', 'm1'), false);
  expect(await source.interrupt(command('interrupt', thread.id, {}))).toEqual({ state: 'done' });
  await until(() => runs(around).length === 2);
  expect(interlude(runs(around)[1])?.userMessageIds).toEqual(['m1']);
});

test('adds a message to the running turn without a queue', async () => {
  const { server, thread, around, source } = await attached();
  server.unknown.add('thread/queue/add');
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => around.openWork(thread.id).turn);
  await source.deliver(message(thread.id, 'and test it', 'm1'), false);
  await until(() => thread.history.length === 3);
  server.endTurn(thread);
  await until(() => types(around).includes('RUN_FINISHED'));
  expect(interlude(around.events.findLast(({ type }) => type === 'RUN_FINISHED'))?.userMessageIds).toContain('m1');
});

test('emits text typed in the terminal as a user message', async () => {
  const { server, thread, around } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => runs(around).length === 1);
  const said = around.events.find(({ role }) => role === 'user');
  expect(interlude(runs(around)[0])?.userMessageIds).toEqual([said?.messageId]);
});

async function withEndedCommand(rule: 'never' | 'command-ended' = 'never') {
  const stage = await attached();
  const { server, thread, around, source } = stage;
  if (rule !== 'never') await source.setWakeRule(command('wake-rule.set', thread.id, { when: rule }));
  server.beginTurn(thread);
  server.message(thread, 'Poll');
  const item = server.runs(thread, 'sleep 5; exit 3');
  server.endTurn(thread);
  await until(() => around.openWork(thread.id).tasks.length === 1);
  return { ...stage, item, taskId: String(item.id) };
}

test('emits the end of a background command without waking Codex', async () => {
  const { server, thread, around, item, taskId } = await withEndedCommand();
  server.ends(thread, item, 3, 'no luck\n');
  await until(() => named(around, 'task:completed').length === 1);
  expect(named(around, 'task:completed')[0]).toMatchObject({ task_id: taskId, status: 'failed', exit_code: 3 });
  expect(server.requests.some(({ method }) => method === 'turn/start')).toBe(false);
});

test('wakes Codex on request with the outcome of a command', async () => {
  const { server, thread, around, source, item, taskId } = await withEndedCommand();
  expect(await source.wake(command('task.wake', thread.id, { taskId }))).toMatchObject({ state: 'failed' });
  server.ends(thread, item, 3, 'no luck\n');
  await until(() => named(around, 'task:completed').length === 1);
  expect(await source.wake(command('task.wake', thread.id, { taskId }))).toEqual({ state: 'done' });
  await until(() => runs(around).length === 2);
  expect(interlude(runs(around)[1])).toMatchObject({
    turn: 'between-run',
    trigger: { kind: 'task', taskIds: [taskId], wokenBy: 'interlude' },
  });
  const { params } = server.requests.findLast(({ method }) => method === 'turn/start') ?? {};
  expect(params?.turnTrigger).toBe(`interlude:task:${taskId}`);
  expect(JSON.stringify(params?.additionalContext)).toContain('no luck');
  expect(server.heard).toEqual(['The background command `sleep 5; exit 3` ended with exit code 3.']);
  expect(around.events.filter(({ role }) => role === 'user')).toHaveLength(1);
});

test('refuses to wake for an unknown task', async () => {
  const { thread, source } = await attached();
  expect(await source.wake(command('task.wake', thread.id, { taskId: 'none' }))).toEqual({
    state: 'failed',
    reason: 'the runner does not know how this task ended',
  });
});

test('queues a wake during a turn for the next one', async () => {
  const { server, thread, around, source, item, taskId } = await withEndedCommand();
  server.ends(thread, item, 0, 'done\n');
  await until(() => named(around, 'task:completed').length === 1);
  server.beginTurn(thread);
  server.message(thread, 'And?');
  await until(() => runs(around).length === 2);
  expect(await source.wake(command('task.wake', thread.id, { taskId }))).toEqual({ state: 'done' });
  server.endTurn(thread);
  await until(() => runs(around).length === 3);
  expect(interlude(runs(around)[2])?.trigger).toMatchObject({ taskIds: [taskId], wokenBy: 'interlude' });
  expect(server.heard[0]).toContain('done');
});

test('wakes by rule for commands ending between turns, together if close', async () => {
  const { server, thread, around, source } = await attached();
  await source.setWakeRule(command('wake-rule.set', thread.id, { when: 'command-ended' }));
  server.beginTurn(thread);
  server.message(thread, 'Poll');
  const [first, second] = [server.runs(thread, 'one'), server.runs(thread, 'two')];
  server.endTurn(thread);
  await until(() => around.openWork(thread.id).tasks.length === 2);
  server.ends(thread, first, 0);
  server.ends(thread, second, 1);
  await until(() => runs(around).length === 2);
  expect(interlude(runs(around)[1])?.trigger?.taskIds).toEqual([first.id, second.id]);
  server.endTurn(thread);
  await settled(() => [...around.stored.values()].join('')).not.toContain('"isDue":true');
  expect(server.heard).toHaveLength(1);
});

test('does not wake by rule for tasks ended in a turn or stopped', async () => {
  const { server, thread, around, source, item, taskId } = await withEndedCommand('command-ended');
  expect(await source.stop(command('task.stop', thread.id, { taskId }))).toEqual({ state: 'done' });
  server.ends(thread, item, -1);
  await until(() => named(around, 'task:completed').length === 1);
  expect(named(around, 'task:completed')[0]).toMatchObject({ status: 'stopped' });
  expect([...around.stored.values()].join('')).not.toContain('"isDue":true');
});

test('keeps the rule and due wakes across a kill', async () => {
  const { server, thread, around, source, connect, item } = await withEndedCommand('command-ended');
  server.ends(thread, item, 0);
  await until(() => [...around.stored.values()].join('').includes('"isDue":true'));
  around.deafen();
  await source.close(0, 'killed');
  const after = new MemorySourceContext(undefined, around);
  await connect(after);
  await until(() => runs(after).length === 2);
  expect(interlude(runs(after)[1])?.trigger?.wokenBy).toBe('interlude');
});

test('answers a permission with an option of Codex; the first answer wins', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Make it');
  const available = ['accept', { acceptWithExecpolicyAmendment: { execpolicy_amendment: ['touch'] } }, 'cancel'];
  const ask = () =>
    server.asks(thread, 'item/commandExecution/requestApproval', {
      ...{ itemId: `i${server.answers.length}`, command: 'touch a', cwd: '/', availableDecisions: available },
    });
  ask();
  await until(() => named(around, 'request:opened').length === 1);
  const options = named(around, 'request:opened')[0]?.options as { id: string }[];
  expect(options.map(({ id }) => id)).toEqual(['accept', 'acceptWithExecpolicyAmendment:1', 'cancel', 'decline']);
  const answer = decision(around, { behavior: 'allow', optionId: 'acceptWithExecpolicyAmendment:1' });
  expect(await source.answer(answer)).toEqual({ state: 'done' });
  await until(() => named(around, 'request:resolved').length === 1);
  expect(server.answers[0]?.result).toEqual({ decision: available[1] });
  expect(named(around, 'request:resolved')[0]).toMatchObject({ outcome: 'allowed' });
  const second = ask();
  await until(() => named(around, 'request:opened').length === 2);
  server.resolved(thread, second);
  await until(() => named(around, 'request:resolved').length === 2);
  expect(named(around, 'request:resolved')[1]).toMatchObject({ outcome: 'unknown' });
  expect(await source.answer(decision(around, { behavior: 'allow' }))).toMatchObject({ state: 'failed' });
  expect(server.answers).toHaveLength(1);
});

test('answers a question by its ids', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  const questions = [{ id: 'colour', header: 'Colour', question: 'Which?', options: [{ label: 'Red' }] }];
  server.asks(thread, 'item/tool/requestUserInput', { itemId: 'q1', questions, isBlocking: false });
  await until(() => named(around, 'request:opened').length === 1);
  expect(await source.answer(decision(around, { answers: { 'Which?': 'Red' } }))).toEqual({ state: 'done' });
  await until(() => named(around, 'request:resolved').length === 1);
  expect(server.answers[0]?.result).toEqual({ answers: { colour: { answers: ['Red'] } } });
});

test('reopens a request once after a disconnect', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Make it');
  server.asks(thread, 'item/commandExecution/requestApproval', { itemId: 'i1', command: 'touch a', cwd: '/' });
  await until(() => named(around, 'request:opened').length === 1);
  for (const client of server.clients) client.drop();
  await until(() => server.requests.filter(({ method }) => method === 'thread/resume').length === 2);
  await settled(() => source.answer(decision(around, { behavior: 'allow' }))).toEqual({ state: 'done' });
  await until(() => named(around, 'request:resolved').length === 1);
  expect(named(around, 'request:opened')).toHaveLength(1);
  expect(named(around, 'request:resolved')[0]).toMatchObject({ outcome: 'allowed' });
});

test('has neither gaps nor duplicates after a disconnect', async () => {
  const { server, thread, around } = await attached();
  server.page = 3;
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  server.says(thread, 'One.');
  const item = server.runs(thread, 'make');
  await until(() => types(around).includes('TOOL_CALL_START'));
  for (const client of server.clients) client.drop();
  server.says(thread, 'Two.');
  server.endTurn(thread);
  server.ends(thread, item, 0, 'made\n');
  server.beginTurn(thread);
  server.message(thread, 'More');
  server.says(thread, 'Three.');
  await until(() => around.events.some(({ delta }) => delta === 'Three.'));
  server.says(thread, 'Four.');
  server.endTurn(thread);
  await until(() => types(around).filter((type) => type === 'RUN_FINISHED').length === 2);
  const said = around.events.flatMap(({ delta, type }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []));
  expect(said).toEqual(['Build it', 'One.', 'Two.', 'More', 'Three.', 'Four.']);
  expect(named(around, 'task:completed')).toMatchObject([{ task_id: item.id, status: 'completed' }]);
});

test('continues the open turn of a killed runner', async () => {
  const { server, thread, around, source, connect } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  server.tell(thread, 'item/started', { turnId: thread.openTurn, item: { type: 'agentMessage', id: 'a1', text: '' } });
  server.tell(thread, 'item/agentMessage/delta', { turnId: thread.openTurn, itemId: 'a1', delta: 'Hal' });
  await until(() => around.events.some(({ delta }) => delta === 'Hal'));
  around.deafen();
  await source.close(0, 'killed');
  const after = new MemorySourceContext(undefined, around);
  await connect(after);
  server.completed(thread, { type: 'agentMessage', id: 'a1', text: 'Half and whole.' });
  server.endTurn(thread);
  await until(() => after.openWork(thread.id).turn === null);
  expect(runs(after)).toHaveLength(1);
  expect(types(after).filter((type) => type === 'TEXT_MESSAGE_START')).toHaveLength(2);
  expect(after.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  const whole = after.events.find(({ delta }) => delta === 'Half and whole.');
  expect(whole?.metadata?.interlude?.whole).toBe(true);
});

test('reports a dead server and follows its successor', async () => {
  const { server, thread, around, source, stop, path } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => around.openWork(thread.id).turn);
  server.die();
  await stop();
  await until(() => around.openWork(thread.id).turn === null);
  await until(() => source.sessions[0]?.trouble);
  expect(await source.reach?.()).toBe(`no Codex listens on ${path}`);
  expect(around.events.find(({ type }) => type === 'RUN_ERROR')).toBeDefined();
  await server.listen(path);
  await until(() => source.sessions[0]?.trouble === undefined);
  expect(await source.reach?.()).toBeNull();
  await source.deliver(message(thread.id, 'hello', 'm1'), false);
  await until(() => runs(around).length === 2);
  expect(types(around).filter((type) => type === 'RUN_ERROR')).toHaveLength(1);
});

test('shows the thread of a subagent as a task with its output', async () => {
  const { server, thread, around, source } = await attached();
  const turn = server.beginTurn(thread);
  server.message(thread, 'Delegate');
  const childThread = server.newThread(thread.id);
  await until(() => childThread.subscribers.size > 0);
  const childTurn = server.beginTurn(childThread, turn);
  server.says(childThread, 'I look.');
  await until(() => around.openWork(thread.id).tasks.length === 1);
  server.endTurn(thread);
  expect(await source.stop(command('task.stop', thread.id, { taskId: childTurn }))).toEqual({ state: 'done' });
  await until(() => named(around, 'task:completed').length === 1);
  expect(named(around, 'task:completed')[0]).toMatchObject({
    task_id: childTurn,
    status: 'stopped',
    summary: 'I look.',
  });
  expect(around.events.find(({ delta }) => delta === 'I look.')?.subagentRunId).toBe(childTurn);
  expect(source.sessions).toHaveLength(1);
});

test('ignores internal threads of Codex', async () => {
  const { server, thread, source } = await attached();
  for (const client of server.clients) {
    client.send({ method: 'thread/started', params: { thread: { id: 'title', ephemeral: true } } });
    client.send({ method: 'thread/status/changed', params: { threadId: 'title', status: { type: 'active' } } });
  }
  server.beginTurn(thread);
  await settled(() => source.sessions.map(({ sessionId }) => sessionId)).toEqual([thread.id]);
  expect(server.requests.filter(({ params }) => params.threadId === 'title')).toEqual([]);
});

test('interrupts the named turn only', async () => {
  const { server, thread, around, source } = await attached();
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  await until(() => around.openWork(thread.id).turn);
  const turnId = around.openWork(thread.id).turn?.runId ?? '';
  expect(await source.interrupt(command('interrupt', thread.id, { turnId: 'other' }))).toMatchObject({
    state: 'failed',
  });
  expect(await source.interrupt(command('interrupt', thread.id, { turnId }))).toEqual({ state: 'done' });
  await until(() => around.openWork(thread.id).turn === null);
  expect(around.events.at(-1)).toMatchObject({ outcome: { type: 'cancelled' } });
});

test('survives and logs garbage and frames of 10 MB', async () => {
  const log: string[] = [];
  const around = Object.assign(new MemorySourceContext(), { log: (_: string, line: string) => void log.push(line) });
  const server = new CodexAppServer();
  const { path } = await server.listen();
  const thread = server.newThread();
  const source = sharedSource(path, { context: around });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await until(() => thread.subscribers.size > 0);
  const endless = '['.repeat(100_000) + ']'.repeat(100_000);
  for (const client of server.clients) {
    for (const text of ['{"half', '[]', '7', 'null', '""', '{}', '{"method":7}', endless]) client.write(text);
  }
  server.beginTurn(thread);
  server.message(thread, 'Say much');
  server.says(thread, 'x'.repeat(10 * 1024 * 1024));
  server.endTurn(thread);
  await until(() => types(around).includes('RUN_FINISHED'));
  expect(log.some((line) => line.includes('not JSON'))).toBe(true);
  expect(log.some((line) => line.includes('invalid message'))).toBe(true);
  for (const { event } of around.told) expect(JSON.stringify(event).length).toBeLessThan(1024 * 1024);
});

test('is not affected by a second client', async () => {
  const { server, thread, around } = await attached();
  const other = await attachTo(server, thread.id);
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  server.says(thread, 'Built.');
  server.endTurn(thread);
  await until(() => types(around).includes('RUN_FINISHED'));
  expect(other.requests).toBe(server.requests);
  expect(types(around).filter((type) => type === 'TEXT_MESSAGE_START')).toHaveLength(2);
});

async function attachTo(server: CodexAppServer, threadId: string) {
  const { path } = await server.listen();
  const source = sharedSource(path, { context: new MemorySourceContext() });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await until(() => (server.threads.get(threadId)?.subscribers.size ?? 0) > 1);
  return server;
}

test('gives up a thread that can’t be resumed', async () => {
  const server = new CodexAppServer();
  let gaveUp = '';
  const around = Object.assign(new MemorySourceContext(), {
    failRunner(why: string) {
      gaveUp = why;
    },
  });
  const own = { sessionId: 's', cwd: process.cwd(), resume: 'none', params: {} };
  const source = ownSource(await server.program(), { context: around, own });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await settled(() => gaveUp).toContain('thread none can');
  expect(around.events.at(-1)).toMatchObject({ name: 'session:ended' });
});

test('emits the whole open turn when attached in the middle', async () => {
  const server = new CodexAppServer();
  const { path } = await server.listen();
  const thread = server.newThread();
  server.beginTurn(thread);
  server.message(thread, 'Long ago');
  server.endTurn(thread);
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  const item = server.runs(thread, 'make');
  const around = new MemorySourceContext();
  const source = sharedSource(path, { context: around });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await until(() => types(around).includes('TOOL_CALL_START'));
  server.endTurn(thread);
  server.ends(thread, item, 0);
  await until(() => named(around, 'task:completed').length === 1);
  expect(around.events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta)).toEqual([
    'Build it',
  ]);
});

test('fails the turn of a child that dies, and resumes its thread', async () => {
  const server = new CodexAppServer();
  const around = new MemorySourceContext();
  const source = ownSource(await server.program(), { context: around });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await until(() => server.threads.size === 1);
  const { thread } = server;
  server.beginTurn(thread);
  server.message(thread, 'Build it');
  const item = server.runs(thread, 'sleep 100');
  await until(() => types(around).includes('TOOL_CALL_START'));
  for (const client of server.clients) {
    client.write('{"method":"item/comp');
    client.drop();
  }
  await until(() => types(around).includes('RUN_ERROR'));
  await until(() => thread.subscribers.size === 1);
  expect(server.threads.size).toBe(1);
  expect(named(around, 'task:started').concat(named(around, 'task:completed'))).toEqual([]);
  expect(item.id).toBeDefined();
  await source.deliver(message('s', 'again', 'm1'), false);
  await until(() => runs(around).length === 2);
  expect(interlude(runs(around)[1])?.userMessageIds).toEqual(['m1']);
});
