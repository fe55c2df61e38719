import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { CodexAdapter } from '@interlude/runner/adapters/codex/codex-adapter';
import { editsOf } from '@interlude/runner/adapters/codex/items';
import { decisionsOf, parseRequest } from '@interlude/runner/adapters/codex/requests';
import { History } from '@interlude/runner/adapters/codex/thread-items';
import { clientIdOfMessage, clientIdOfWake, parseClientId } from '@interlude/runner/adapters/codex/turns';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { expectValidEvents } from '../../support/recordings';

/** A connection under a simulated clock. */
function wire() {
  let runs = 0;
  let now = 0;
  const adapter = new CodexAdapter({ sessionOf: (id) => `s-${id}`, newRunId: () => `r${++runs}` });
  const told: EmittedEvent[] = [];
  const pass = (dir: 'in' | 'out', msg: object) => void told.push(...adapter.read({ dir, msg }, ++now));
  return {
    adapter,
    told,
    out: (msg: object) => pass('out', msg),
    in: (method: string, params: object) => pass('in', { method, params: { threadId: 't', ...params } }),
    answer: (id: number, result: object) => pass('in', { id, result }),
    turn: (id: string, threadId = 't', rootTurnId = id) =>
      pass('in', { method: 'turn/started', params: { threadId, turn: { id, rootTurnId } } }),
    item: (turnId: string, item: object, threadId = 't') =>
      pass('in', { method: 'item/completed', params: { threadId, turnId, item } }),
    end: (id: string, status = 'completed', threadId = 't') =>
      pass('in', { method: 'turn/completed', params: { threadId, turn: { id, status } } }),
    /** Advances the clock. */
    wait(ms: number) {
      now += ms;
      if (adapter.dueAt !== null && adapter.dueAt <= now) told.push(...adapter.elapsed(now));
    },
    close() {
      told.push(...adapter.ended({ reason: 'closed', isAsked: true }, ++now));
      expectValidEvents(told);
    },
    of: (type: string) =>
      told.filter(({ event }) => event.type === type || event.name === type).map(({ event }) => event),
  };
}

const user = (id: string, text: string, clientId: string | null = null) => ({
  ...{ type: 'userMessage', id, clientId, content: [{ type: 'text', text }] },
});
const says = (id: string, text: string) => ({ type: 'agentMessage', id, text });
const cause = ({ metadata }: { metadata?: { interlude?: object } } = {}) => metadata?.interlude;

test('recognizes a wake by its client id and does not show it as a user message', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', user('i1', 'The command has ended.', clientIdOfWake('rule', ['call/1', 'call,2'])));
  codex.item('u1', says('i2', 'I see.'));
  codex.end('u1');
  const trigger = { kind: 'task', taskIds: ['call/1', 'call,2'], wokenBy: 'interlude' };
  expect(cause(codex.of('RUN_STARTED')[0])).toMatchObject({ turn: 'between-run', trigger });
  expect(codex.told.filter(({ event }) => event.role === 'user')).toEqual([]);
  codex.close();
});

test('names a dashboard message before Codex does', () => {
  const codex = wire();
  codex.in('thread/started', { thread: { id: 't' } });
  codex.out({ id: 7, method: 'turn/start', params: { threadId: 't', clientUserMessageId: clientIdOfMessage('m1') } });
  codex.answer(7, { turn: { id: 'u1' } });
  codex.turn('u1');
  expect(cause(codex.of('RUN_STARTED')[0])).toMatchObject({ turn: 'user', userMessageIds: ['m1'] });
  codex.close();
});

test('round-trips client ids', () => {
  expect(parseClientId(clientIdOfMessage('wake'))).toEqual({ kind: 'message', messageId: 'wake' });
  expect(parseClientId(clientIdOfWake('c1', ['%', 'a,b']))).toEqual({ kind: 'wake', taskIds: ['%', 'a,b'] });
  expect(parseClientId('interlude:wake:%E0%A4%A')).toMatchObject({ kind: 'wake' });
  expect(parseClientId('of another client')).toBeNull();
});

describe('a turn without a known cause', () => {
  test('is attributed to an active goal', () => {
    const codex = wire();
    codex.in('thread/started', { thread: { id: 't' } });
    codex.in('thread/goal/updated', { goal: { objective: 'Build it', status: 'active' } });
    codex.turn('u1');
    codex.wait(2_000);
    expect(cause(codex.of('RUN_STARTED')[0])).toMatchObject({ trigger: { kind: 'goal' } });
    codex.close();
  });

  test('is written without a cause after a timeout', () => {
    const codex = wire();
    codex.turn('u1');
    expect(codex.told).toEqual([]);
    codex.wait(4_000);
    expect(cause(codex.of('RUN_STARTED')[0])).toMatchObject({ trigger: { kind: 'unknown' } });
    codex.item('u1', user('i1', 'Late'));
    codex.end('u1');
    expect(cause(codex.of('RUN_FINISHED')[0])).toMatchObject({ userMessageIds: ['i1'] });
    codex.close();
  });
});

test('infers a missing end from an idle or failed thread', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', user('i1', 'Go'));
  codex.in('thread/status/changed', { status: { type: 'idle' } });
  codex.wait(6_000);
  expect(cause(codex.of('RUN_FINISHED')[0])).toMatchObject({ inferred: true });
  codex.turn('u2');
  codex.item('u2', user('i2', 'Again'));
  codex.in('thread/status/changed', { status: { type: 'systemError' } });
  codex.in('error', { error: { message: '{"error":{"message":"no credit"}}' }, willRetry: false });
  codex.wait(3_000);
  expect(codex.of('RUN_ERROR')[0]).toMatchObject({ message: 'no credit' });
  codex.close();
});

test('maps a v1 subagent to a task with requests and further runs', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', user('i1', 'Delegate'));
  const spawn = { type: 'collabAgentToolCall', id: 'c1', tool: 'spawnAgent', prompt: 'Look around\nand tell me' };
  codex.item('u1', { ...spawn, receiverThreadIds: ['child'], agentsStates: {} });
  codex.turn('k1', 'child', 'u1');
  codex.item('k1', user('k-i1', 'Look around'), 'child');
  codex.end('u1');
  const approval = { threadId: 'child', turnId: 'k1', itemId: 'k-c1', command: 'ls', cwd: '/' };
  codex.told.push(
    ...codex.adapter.read(
      { dir: 'in', msg: { id: 3, method: 'item/commandExecution/requestApproval', params: approval } },
      50,
    ),
  );
  codex.item('k1', says('k-i2', 'All quiet.'), 'child');
  codex.end('k1', 'completed', 'child');
  codex.turn('k2', 'child', 'u1');
  codex.end('k2', 'interrupted', 'child');
  const [first] = codex.of('task:started').map(({ value }) => fieldsOf(value));
  expect(first).toMatchObject({
    task_id: 'k1',
    tool_use_id: 'c1',
    description: 'Look around',
    task_type: 'local_agent',
  });
  expect(codex.of('task:completed').map(({ value }) => fieldsOf(value))).toMatchObject([
    { task_id: 'k1', status: 'completed', summary: 'All quiet.' },
    { task_id: 'k2', status: 'stopped' },
  ]);
  expect(codex.told.every(({ sessionId }) => sessionId === 's-t')).toBe(true);
  expect(codex.of('request:resolved')).toHaveLength(1);
  codex.close();
});

test('loses an unlisted command unless its end follows', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', user('i1', 'Run'));
  for (const id of ['c1', 'c2']) {
    const item = { type: 'commandExecution', id, command: id, processId: id };
    codex.in('item/started', { turnId: 'u1', item });
  }
  codex.end('u1');
  codex.out({ id: 1, method: 'thread/backgroundTerminals/list', params: { threadId: 't' } });
  codex.answer(1, { data: [], nextCursor: null });
  codex.item('u1', { type: 'commandExecution', id: 'c1', command: 'c1', exitCode: 0, aggregatedOutput: 'x' });
  codex.wait(3_000);
  expect(codex.of('task:completed').map(({ value }) => fieldsOf(value))).toMatchObject([
    { task_id: 'c1', status: 'completed' },
    { task_id: 'c2', status: 'lost' },
  ]);
  codex.close();
});

test('ignores deltas of an item without a start until it is complete', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', user('i1', 'Say'));
  codex.in('item/agentMessage/delta', { turnId: 'u1', itemId: 'a1', delta: 'the end' });
  codex.item('u1', says('a1', 'From the beginning to the end'));
  codex.in('item/agentMessage/delta', { turnId: 'u1', itemId: 'a1', delta: ' and more' });
  const said = codex.of('TEXT_MESSAGE_CONTENT').map(({ delta }) => delta);
  expect(said).toEqual(['Say', 'From the beginning to the end']);
  codex.close();
});

describe('the history of a thread', () => {
  const entry = (type: string, turnId: string, id?: string) => ({ type, turnId, ...(id ? { item: { id } } : {}) });
  const past = [
    entry('turnStarted', 'a'),
    entry('item', 'a', '1'),
    entry('turnCompleted', 'a'),
    entry('item', 'a', '2'),
  ];
  const now = [entry('turnStarted', 'b'), entry('item', 'b', '3')];
  const fresh = (entries: ReturnType<History['read']>) =>
    entries.filter(({ isOld }) => !isOld).map(({ kind, turnId, fields }) => `${kind} ${fields.id ?? turnId}`);

  test('is new after the last written turn, across pages', () => {
    const history = new History({ lastTurn: 'a', openTurn: null, isWhole: false });
    expect(fresh(history.read({ data: past.slice(0, 2), nextCursor: 'more' }))).toEqual([]);
    expect(fresh(history.read({ data: [...past.slice(2), ...now] }))).toEqual(['item 2', 'turnStarted b', 'item 3']);
  });

  test('is new only for the open turn of an unknown thread', () => {
    const told = { lastTurn: null, openTurn: null, isWhole: false };
    expect(fresh(new History(told).read({ data: [...past, ...now] }))).toEqual(['turnStarted b', 'item 3']);
    expect(fresh(new History(told).read({ data: past }))).toEqual([]);
  });

  test('is new for a thread created here', () => {
    const history = new History({ lastTurn: null, openTurn: null, isWhole: true });
    expect(fresh(history.read({ data: past }))).toHaveLength(4);
  });

  test('is not new if the last written turn was reverted', () => {
    const history = new History({ lastTurn: 'gone', openTurn: null, isWhole: true });
    expect(fresh(history.read({ data: past }))).toEqual([]);
  });
});

test('offers Codex’s decisions in order, plus deny', () => {
  const network = (action: string) => ({
    applyNetworkPolicyAmendment: { network_policy_amendment: { host: 'example.org', action } },
  });
  const decisions = decisionsOf(['accept', 'acceptForSession', network('allow'), network('deny'), 'cancel', 7, {}]);
  expect(decisions.map(({ option }) => [option.kind, option.isLasting === true])).toEqual([
    ['allow', false],
    ['allow', true],
    ['allow', true],
    ['deny', true],
    ['deny', false],
    ['deny', false],
  ]);
  expect(new Set(decisions.map(({ option }) => option.id)).size).toBe(decisions.length);
  expect(decisions.at(-1)?.result).toEqual({ decision: 'decline' });
});

test('maps an MCP form to one question per field', () => {
  const requestedSchema = {
    properties: {
      colour: { enum: ['red', 'blue'], title: 'Colour' },
      count: { type: 'integer' },
      sure: { type: 'boolean' },
    },
  };
  const params = {
    threadId: 't',
    turnId: 'u',
    serverName: 'paint',
    mode: 'form',
    message: 'Which paint?',
    requestedSchema,
  };
  const asked = parseRequest({ id: 5, method: 'mcpServer/elicitation/request', params });
  expect(asked?.value).toMatchObject({ kind: 'question', title: 'Which paint?', tool_name: 'paint' });
  expect(asked?.fields).toMatchObject([
    { id: 'colour', header: 'Colour', type: 'text' },
    { id: 'count', type: 'number' },
    { id: 'sure', type: 'boolean' },
  ]);
});

test('ignores requests to programs', () => {
  expect(parseRequest({ id: 1, method: 'currentTime/read', params: { threadId: 't' } })).toBeNull();
  expect(parseRequest({ id: 1, method: 'item/tool/call', params: { threadId: 't', tool: 'x' } })).toBeNull();
});

test('maps hunks, new files and deleted files to edits', () => {
  const diff = '@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-x\n+y\n';
  const changes = [
    { path: 'new', kind: { type: 'add' }, diff: 'hello\n' },
    { path: 'old', kind: { type: 'delete' }, diff: 'bye\n' },
    { path: 'some', kind: { type: 'update', move_path: 'moved' }, diff },
    { path: 7 },
  ];
  expect(editsOf(changes)).toEqual([
    { path: 'new', before: '', after: 'hello\n' },
    { path: 'old', before: 'bye\n', after: '' },
    { path: 'moved', before: 'a\nb\n', after: 'a\nc\n' },
    { path: 'moved', before: 'x\n', after: 'y\n' },
  ]);
});

test('replaces a request whose id is reused', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', says('i0', 'I ask.'));
  const ask = (itemId: string, command: string) => ({
    ...{ id: 3, method: 'item/commandExecution/requestApproval' },
    params: { threadId: 't', turnId: 'u1', itemId, command },
  });
  const pass = (msg: object) => codex.told.push(...codex.adapter.read({ dir: 'in', msg }, 50));
  pass(ask('i1', 'ls'));
  pass(ask('i2', 'rm -rf /'));
  expect(codex.of('request:resolved').map(({ value }) => value)).toEqual([
    { request_id: 'i1:3', outcome: 'unknown', message: 'Codex reused the id for another request.' },
  ]);
  expect(codex.adapter.openRequest(3)?.value.input).toMatchObject({ command: 'rm -rf /' });
  codex.close();
});

test('offers only deny for an input that can’t be shown', () => {
  const ask = (command: unknown) =>
    parseRequest({
      id: 1,
      method: 'item/commandExecution/requestApproval',
      params: { threadId: 't', itemId: 'i', command },
    });
  const kinds = (command: unknown) => new Set(ask(command)?.value.options?.map(({ kind }) => kind));
  expect(kinds('ls')).toEqual(new Set(['allow', 'deny']));
  expect(kinds('x'.repeat(1_000_000))).toEqual(new Set(['deny']));
  expect(kinds(JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`))).toEqual(new Set(['deny']));
  expect(ask('x'.repeat(1_000_000))?.value.title?.length).toBeLessThan(5_000);
});

test('ignores Object.prototype names', () => {
  const codex = wire();
  codex.turn('u1');
  codex.item('u1', says('i0', 'I plan.'));
  codex.in('thread/goal/updated', { goal: { objective: 'Win', status: 'constructor' } });
  codex.in('turn/plan/updated', { turnId: 'u1', plan: [{ step: 'One', status: 'constructor' }] });
  expect(codex.of(CUSTOM.notice).map(({ value }) => fieldsOf(value).text)).toEqual(['constructor: Win']);
  expect(codex.of('ACTIVITY_SNAPSHOT')[0]?.content).toEqual({ entries: [{ content: 'One', status: 'pending' }] });
  codex.close();
});
