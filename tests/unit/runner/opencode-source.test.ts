import type { RequestOption } from '@interlude/protocol/ag-ui';
import { fieldsOf } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { OpencodeAdapter } from '@interlude/runner/adapters/opencode/opencode-adapter';
import type { WireFrame } from '@interlude/runner/adapters/wire';
import type { CommandOf } from '@interlude/runner/host/source';
import { kind } from '@interlude/runner/sources/opencode/kind';
import { OpencodeSource, type OpencodeSourceOptions } from '@interlude/runner/sources/opencode/opencode-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { FakeOpencodeServer } from '../../support/opencode-server';
import { eventLines } from '../../support/recordings';
import { type SourceStage, testSourceContract } from '../../support/source-contract';

const poll = (look: () => unknown) => expect.poll(look, { interval: 10 });
const of = (server: FakeOpencodeServer, path: string) => server.asked.filter((one) => one.path === path);

async function stage(): Promise<SourceStage & { server: FakeOpencodeServer }> {
  const server = new FakeOpencodeServer();
  await server.start();
  onTestFinished(() => server.kill());
  const session = server.session();
  let around: MemorySourceContext | null = null;
  let answer = { parent: '', message: '' };
  return {
    server,
    open(surroundings) {
      around = surroundings;
      return open(server, surroundings);
    },
    async begin() {
      await poll(() => server.readers).toBeGreaterThan(0);
      const parent = server.user(session, 'Build it');
      answer = { parent, message: server.begin(session, parent) };
      server.say(session, answer.message, 'Building.');
      await poll(() => around?.openWork(session).turn ?? null).not.toBeNull();
    },
    async finish() {
      await poll(() => server.readers).toBeGreaterThan(0);
      server.end(session, answer.message, answer.parent);
      await poll(() => around?.openWork(session).turn ?? null).toBeNull();
    },
    heard: () =>
      of(server, `/session/${session}/prompt_async`).map(
        ({ body }) => (body as { parts: { text: string }[] }).parts[0]?.text ?? '',
      ),
    goesOn: true,
    features: kind.features,
  };
}

function open(
  server: FakeOpencodeServer,
  surroundings: MemorySourceContext,
  more: Partial<OpencodeSourceOptions> = {},
) {
  let runs = 0;
  const address = { url: server.url, user: 'opencode', password: null };
  return OpencodeSource.open({
    address,
    shownUrl: server.url,
    context: surroundings,
    newRunId: () => `r${++runs}`,
    ...more,
  });
}

describe('the opencode source', () => {
  testSourceContract(stage);
});

/** A server with one session, and a source that follows it. */
async function following(more: Partial<OpencodeSourceOptions> = {}) {
  const server = new FakeOpencodeServer();
  await server.start();
  onTestFinished(() => server.kill().catch(() => undefined));
  const session = server.session();
  let around = new MemorySourceContext();
  let source = await connect();
  return {
    server,
    session,
    source: () => source,
    around: () => around,
    text: () => eventLines(around.told.filter((one) => one.sessionId === session)),
    isConnected: () => poll(() => server.readers).toBe(1),
    /** Simulates `kill -9`. */
    async killed() {
      around.deafen();
      const before = source;
      await before.close();
      around = new MemorySourceContext(undefined, around);
      source = await connect();
    },
  };

  async function connect() {
    const opened = await open(server, around, more);
    await opened.start();
    onTestFinished(() => opened.close());
    await poll(() => server.readers).toBe(1);
    return opened;
  }
}

const turnsIn = (around: MemorySourceContext) =>
  around.events.flatMap(({ type, runId, outcome, message }) =>
    type === 'RUN_STARTED' || type === 'RUN_FINISHED' || type === 'RUN_ERROR'
      ? [[type, runId, (outcome as { type?: string } | undefined)?.type ?? message ?? '']]
      : [],
  );
const textsIn = (around: MemorySourceContext) => {
  const texts = new Map<string, string>();
  for (const { type, messageId, delta, metadata } of around.events) {
    if (type !== 'TEXT_MESSAGE_CONTENT') continue;
    const before = metadata?.interlude?.whole ? '' : (texts.get(String(messageId)) ?? '');
    texts.set(String(messageId), before + String(delta));
  }
  return [...texts.values()];
};

describe('missed events', () => {
  test('are emitted after a disconnect, in order and once', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    server.turn(session, 'One', 'First.');
    await poll(() => textsIn(around())).toEqual(['One', 'First.']);
    server.cut();
    server.turn(session, 'Two', 'Second.');
    server.turn(session, 'Three', 'Third.');
    await isConnected();
    server.turn(session, 'Four', 'Fourth.');
    await poll(() => textsIn(around())).toEqual([
      'One',
      'First.',
      'Two',
      'Second.',
      'Three',
      'Third.',
      'Four',
      'Fourth.',
    ]);
    const turns = turnsIn(around());
    expect(turns).toHaveLength(8);
    expect(new Set(turns.map(String)).size).toBe(8);
  });

  test('of a new session are emitted from its start', async () => {
    const { server, around, isConnected } = await following();
    await isConnected();
    server.cut();
    const other = server.session();
    server.turn(other, 'Hello', 'Hello to you.');
    await poll(() => around().sessionIds).toContain(other);
    await poll(() => textsIn(around())).toEqual(['Hello', 'Hello to you.']);
  });

  test('cut within a frame are read from the history', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'One');
    const message = server.begin(session, parent);
    const part = server.part(session, message, { type: 'text', text: '', time: { start: 1 } });
    server.delta(session, message, part, 'Half a ');
    await poll(() => textsIn(around())).toEqual(['One', 'Half a ']);
    server.cut('data: {"payload":{"type":"message.part.del');
    server.part(session, message, { id: part, type: 'text', text: 'Half a sentence.', time: { start: 1, end: 2 } });
    server.end(session, message, parent);
    await poll(() => turnsIn(around()).at(-1)?.[0]).toBe('RUN_FINISHED');
    expect(textsIn(around())).toEqual(['One', 'Half a sentence.']);
  });

  test('of a runner killed within a text continue in the same turn', async () => {
    const { server, session, around, killed, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'One');
    const message = server.begin(session, parent);
    const part = server.part(session, message, { type: 'text', text: '', time: { start: 1 } });
    server.delta(session, message, part, 'Half a ');
    await poll(() => textsIn(around())).toEqual(['One', 'Half a ']);
    await killed();
    server.delta(session, message, part, 'sentence.');
    server.part(session, message, { id: part, type: 'text', text: 'Half a sentence.', time: { start: 1, end: 2 } });
    server.end(session, message, parent);
    await poll(() => turnsIn(around())).toEqual([
      ['RUN_STARTED', `turn_${parent}`, ''],
      ['RUN_FINISHED', `turn_${parent}`, 'success'],
    ]);
    expect(textsIn(around())).toEqual(['One', 'Half a sentence.']);
    const starts = around().events.filter(({ type }) => type === 'TEXT_MESSAGE_START');
    expect(starts).toHaveLength(2);
  });

  test('of several turns are emitted by the next runner', async () => {
    const { server, session, around, killed, isConnected } = await following();
    await isConnected();
    server.turn(session, 'One', 'First.');
    await poll(() => turnsIn(around())).toHaveLength(2);
    around().deafen();
    server.turn(session, 'Two', 'Second.');
    await killed();
    await poll(() => textsIn(around())).toEqual(['One', 'First.', 'Two', 'Second.']);
    expect(turnsIn(around())).toHaveLength(4);
  });

  test('are read from the messages without a history', async () => {
    const { server, session, around, killed, isConnected } = await following();
    await isConnected();
    server.hasHistory = false;
    server.cut();
    server.turn(session, 'One', 'First.');
    await poll(() => textsIn(around())).toEqual(['One', 'First.']);
    expect(turnsIn(around())).toHaveLength(2);
    await killed();
    server.turn(session, 'Two', 'Second.');
    await poll(() => textsIn(around())).toEqual(['One', 'First.', 'Two', 'Second.']);
  });
});

describe('a server that is killed', () => {
  test('and restarted has its open turn and subagents closed', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'Go');
    const message = server.begin(session, parent);
    const child = server.session({ parentID: session, title: 'Look (@general subagent)', agent: 'general' });
    const call = { type: 'tool', tool: 'task', callID: 'c1' };
    const input = { description: 'Look', subagent_type: 'general' };
    server.part(session, message, { ...call, state: { status: 'running', input, metadata: { sessionId: child } } });
    server.busy.add(child);
    await poll(() => around().openWork(session).tasks).toHaveLength(1);
    await server.kill();
    await server.start();
    await poll(() => around().openWork(session)).toEqual({ turn: null, tasks: [], requests: [] });
    expect(turnsIn(around()).at(-1)).toEqual(['RUN_ERROR', `turn_${parent}`, 'OpenCode ended during this turn.']);
    const [ended] = around().events.filter(({ name }) => name === 'task:completed');
    expect(ended?.value).toMatchObject({ task_id: child, status: 'lost' });
    server.turn(session, 'Again', 'Done.');
    await poll(() => turnsIn(around()).at(-1)?.[2]).toBe('success');
  });

  test('fails a message that it had not answered', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    const id = server.user(session, 'Go');
    await poll(() => textsIn(around())).toEqual(['Go']);
    await server.kill();
    await server.start();
    await poll(() => turnsIn(around()).at(-1)).toEqual([
      'RUN_ERROR',
      `turn_${id}`,
      'OpenCode ended before handling this message. Send it again.',
    ]);
  });
});

describe('a server that does not respond', () => {
  test('is retried and followed once it responds', async () => {
    const server = new FakeOpencodeServer();
    await server.start();
    onTestFinished(() => server.kill());
    server.isMute = true;
    const session = server.session();
    const around = new MemorySourceContext();
    const source = await open(server, around);
    await source.start();
    onTestFinished(() => source.close());
    await server.kill();
    server.isMute = false;
    await server.start();
    await poll(() => around.sessionIds).toContain(session);
  });

  test('is reachable if only its stream is refused', async () => {
    const server = new FakeOpencodeServer();
    await server.start();
    onTestFinished(() => server.kill());
    server.streamStatus = 504;
    const around = new MemorySourceContext();
    const lines: string[] = [];
    const source = await open(server, Object.assign(around, { log: (_: string, line: string) => lines.push(line) }));
    await source.start();
    onTestFinished(() => source.close());
    await poll(() => lines.join('\n')).toContain('answered 504');
    expect(await source.reach()).toBeNull();
  });

  test('is reported if it requires a password', async () => {
    const server = new FakeOpencodeServer();
    await server.start();
    onTestFinished(() => server.kill());
    server.password = 'right';
    const session = server.session();
    const around = new MemorySourceContext();
    const lines: string[] = [];
    const source = await open(server, Object.assign(around, { log: (_: string, line: string) => lines.push(line) }));
    await source.start();
    await poll(() => lines.join('\n')).toContain('requires a password');
    await source.close();
    const address = { url: server.url, user: 'opencode', password: 'right' };
    const second = await open(server, around, { address });
    await second.start();
    onTestFinished(() => second.close());
    await poll(() => around.sessionIds).toContain(session);
  });
});

describe('invalid frames', () => {
  test('are skipped and logged, and later ones are read', async () => {
    const lines: string[] = [];
    const { server, session, around, isConnected } = await following();
    Object.assign(around(), { log: (_: string, line: string) => lines.push(line) });
    await isConnected();
    server.write('not JSON at all');
    server.write('{"payload":{"type":"message.updated","properties":{"sessionID":7,"info":null}}}');
    server.write({ payload: { type: 'message.part.updated', properties: { sessionID: session, part: [] } } });
    server.write({ payload: { type: 'unheard.of', properties: { sessionID: session, text: 'x'.repeat(10_000_000) } } });
    server.turn(session, 'One', 'y'.repeat(10_000_000));
    await poll(() => turnsIn(around()).at(-1)?.[2]).toBe('success');
    expect(textsIn(around()).at(-1)).toHaveLength(10_000_000);
    expect(lines.join('\n')).toContain('skipped an unreadable event: not JSON at all');
  });

  test('of deleted sessions are skipped', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    server.tell('session.status', { sessionID: 'ses_gone', status: { type: 'busy' } });
    server.turn(session, 'One', 'First.');
    await poll(() => textsIn(around())).toEqual(['One', 'First.']);
    expect(around().sessionIds).toEqual([session]);
  });
});

const from = { kind: 'person', id: 'operator' } as const;
const message = (sessionId: string, messageId: string, text: string): CommandOf<'message'> => ({
  ...{ id: messageId, type: 'message', sessionId, createdAt: 1, expiresAt: 2 },
  body: { messageId, text, from },
});

describe('commands', () => {
  test('deliver a message that its turn names, once', async () => {
    const { server, session, source, around, isConnected } = await following();
    await isConnected();
    expect(await source().deliver(message(session, 'm1', 'Hello'), false)).toEqual({ state: 'delivered' });
    expect(source().sessions).toMatchObject([{ sessionId: session, pendingMessages: 1 }]);
    const parent = String(fieldsOf(server.entries.at(-1)?.data.part).messageID);
    const answer = server.begin(session, parent);
    server.say(session, answer, 'Hi.');
    server.end(session, answer, parent);
    await poll(() => turnsIn(around())).toHaveLength(2);
    const [started] = around().events.filter(({ type }) => type === 'RUN_STARTED');
    expect(started?.metadata?.interlude?.userMessageIds).toEqual(['m1']);
    expect(textsIn(around())).toEqual(['Hi.']);
    await poll(() => source().sessions).toMatchObject([{ pendingMessages: 0 }]);
  });

  test('answer a permission of a subagent in the root session', async () => {
    const { server, session, source, around, isConnected } = await following();
    await isConnected();
    const child = server.session({ parentID: session, title: 'Look (@general subagent)' });
    const id = server.ask(child, 'rm -r build');
    await poll(() => around().openWork(session).requests).toEqual([id]);
    expect(around().events.find(({ name }) => name === 'request:opened')?.value).toMatchObject({
      title: 'bash: rm -r build (asked by the subagent “Look (@general subagent)”)',
      options: [{ id: 'once' }, { id: 'always', isLasting: true }, { id: 'reject', kind: 'deny' }],
    });
    const command = decision(around(), session, id, { behavior: 'deny', optionId: 'reject', message: 'Keep it' });
    expect(await source().answer(command)).toEqual({ state: 'done' });
    expect(of(server, `/permission/${id}/reply`)).toMatchObject([{ body: { reply: 'reject', message: 'Keep it' } }]);
    expect(await source().answer(command)).toMatchObject({ state: 'failed' });
    await poll(() => around().openWork(session).requests).toEqual([]);
    const [resolved] = around().events.filter(({ name }) => name === 'request:resolved');
    expect(resolved?.value).toMatchObject({ request_id: id, outcome: 'denied' });
  });

  test('answer a permission of a killed runner', async () => {
    const { server, session, source, around, killed, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'Go');
    server.begin(session, parent);
    const id = server.ask(session, 'make');
    await poll(() => around().openWork(session).requests).toEqual([id]);
    await killed();
    await poll(() => around().events.filter(({ name }) => name === 'request:opened').length).toBe(2);
    const command = decision(around(), session, id, { behavior: 'allow', optionId: 'once' });
    expect(await source().answer(command)).toEqual({ state: 'done' });
    expect(of(server, `/permission/${id}/reply`)).toHaveLength(1);
  });

  test('close a permission answered elsewhere during a disconnect', async () => {
    const { server, session, around, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'Go');
    server.begin(session, parent);
    const id = server.ask(session, 'make');
    await poll(() => around().openWork(session).requests).toEqual([id]);
    server.cut();
    server.permissions.delete(id);
    await poll(() => around().openWork(session).requests).toEqual([]);
    expect(around().openWork(session).turn).not.toBeNull();
  });

  test('answer a question with the labels of each part', async () => {
    const { server, session, source, around, isConnected } = await following();
    await isConnected();
    const options = [{ label: 'Red' }, { label: 'Blue' }];
    const id = server.question(session, [
      { question: 'Which?', header: 'Which', options },
      { question: 'Which of all?', header: 'All', options, multiple: true, custom: false },
    ]);
    await poll(() => around().openWork(session).requests).toEqual([id]);
    const answer = (answers: Record<string, string | string[]>): CommandOf<'question.answer'> => ({
      ...{ id: 'c', type: 'question.answer', sessionId: session, createdAt: 1, expiresAt: 2 },
      body: { requestId: id, answers, ...signed(around(), session, id) },
    });
    const wrong = await source().answer(answer({ 'Which?': 'Green', 'Which of all?': ['Green'] }));
    expect(wrong).toEqual({ state: 'failed', reason: '"Which of all?" accepts only the offered answers' });
    expect(await source().answer(answer({ 'Which?': 'Green', 'Which of all?': ['Red', 'Blue'] }))).toEqual({
      state: 'done',
    });
    expect(of(server, `/question/${id}/reply`)).toMatchObject([{ body: { answers: [['Green'], ['Red', 'Blue']] } }]);
  });

  test('abort the session on interrupt, and a subagent on stop', async () => {
    const { server, session, source, around, isConnected } = await following();
    await isConnected();
    const parent = server.user(session, 'Go');
    const turn = server.begin(session, parent);
    const child = server.session({ parentID: session, title: 'Look' });
    const answer = server.begin(child, server.user(child, 'Look'));
    await poll(() => around().openWork(session).tasks).toHaveLength(1);
    const common = { id: 'c', sessionId: session, createdAt: 1, expiresAt: 2 };
    const stop = { ...common, type: 'task.stop' as const, body: { taskId: child } };
    expect(await source().stop(stop)).toEqual({ state: 'done' });
    server.end(child, answer, parent, { error: { name: 'MessageAbortedError', data: {} } });
    await poll(() => around().openWork(session).tasks).toEqual([]);
    expect(await source().stop(stop)).toMatchObject({ state: 'failed' });
    const late = { ...common, type: 'interrupt' as const, body: { turnId: 'another' } };
    expect(await source().interrupt(late)).toMatchObject({ state: 'failed' });
    expect(await source().interrupt({ ...late, body: {} })).toEqual({ state: 'done' });
    server.end(session, turn, parent, { error: { name: 'MessageAbortedError', data: {} } });
    await poll(() => turnsIn(around()).at(-1)?.[2]).toBe('cancelled');
    expect([...of(server, `/session/${child}/abort`), ...of(server, `/session/${session}/abort`)]).toHaveLength(2);
  });
});

test('replays its recording to the same events', async () => {
  const frames: WireFrame[] = [];
  const record = (frame: WireFrame) => frames.push(structuredClone(frame));
  const { server, session, source, around, isConnected, text } = await following({ record });
  await isConnected();
  server.turn(session, 'One', 'First.');
  await poll(() => textsIn(around())).toEqual(['One', 'First.']);
  server.cut();
  server.turn(session, 'Two', 'Second.');
  await isConnected();
  const id = server.ask(session, 'make');
  await poll(() => around().openWork(session).requests).toEqual([id]);
  await source().answer(decision(around(), session, id, { behavior: 'allow', optionId: 'always' }));
  await poll(() => around().openWork(session).requests).toEqual([]);
  const adapter = new OpencodeAdapter({ sessionOf: (root) => root, newRunId: () => 'r' });
  const played = eventLines(frames.flatMap((frame) => adapter.read(frame, Date.now())));
  // The source adds `replyTo` on delivery.
  expect(played).toBe(text().replaceAll(/ \{"replyTo":.*\}$/gm, ''));
});

describe('followed sessions', () => {
  test('are those of a named folder', async () => {
    const { server, around, isConnected } = await following({ directory: '/elsewhere' });
    await isConnected();
    const inside = server.session({ directory: '/elsewhere' });
    server.turn(server.session(), 'Not this', 'No.');
    server.turn(inside, 'This', 'Yes.');
    await poll(() => textsIn(around())).toEqual(['This', 'Yes.']);
    expect(around().sessionIds).toEqual([inside]);
  });

  test('are the named one, created if missing', async () => {
    const { server, session, around, killed, isConnected } = await following({ session: 'mine' });
    await isConnected();
    // created and stored; a runner killed in between creates another one
    await poll(() => around().sessionIds).toEqual(['mine']);
    server.turn(session, 'Not this', 'No.');
    const made = [...server.sessions.keys()].at(-1) ?? '';
    expect(made).not.toBe(session);
    await killed();
    server.turn(made, 'This', 'Yes.');
    await poll(() => textsIn(around())).toEqual(['This', 'Yes.']);
    expect(around().told.every(({ sessionId }) => sessionId === 'mine')).toBe(true);
    expect(server.sessions.size).toBe(2);
  });

  test('include an old one from its start when it becomes active', async () => {
    const { server, session, around, isConnected } = await following({ now: () => Date.now() + 48 * 60 * 60_000 });
    await isConnected();
    expect(around().sessionIds).toEqual([]);
    server.cut();
    server.turn(session, 'One', 'First.');
    await isConnected();
    server.turn(session, 'Two', 'Second.');
    await poll(() => textsIn(around())).toEqual(['One', 'First.', 'Two', 'Second.']);
  });
});

/** The server’s proof that an answer is meant for this request. */
function signed(around: MemorySourceContext, sessionId: string, requestId: string) {
  const opened = around.events.findLast(
    ({ name, value }) => name === 'request:opened' && fieldsOf(value).request_id === requestId,
  );
  const { tool_name: tool, input, options } = fieldsOf(opened?.value);
  const offered = options === undefined ? {} : { options: options as RequestOption[] };
  const digest = requestDigest({ sessionId, requestId, tool: String(tool), input, ...offered, position: '7' });
  return { digest, openedPosition: '7' };
}

function decision(
  around: MemorySourceContext,
  sessionId: string,
  requestId: string,
  said: { behavior: 'allow' | 'deny'; optionId: string; message?: string },
): CommandOf<'permission.decision'> {
  return {
    ...{ id: 'c', type: 'permission.decision', sessionId, createdAt: 1, expiresAt: 2 },
    body: { requestId, ...said, ...signed(around, sessionId, requestId) },
  };
}
