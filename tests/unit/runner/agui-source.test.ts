import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgUiSource } from '@interlude/runner/sources/agui/agui-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AmbientServer, ambientTaskEnded, ambientTaskStarted, said } from '@/tests/support/agui-stage';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { message, SESSION, settled, startAgUiSource } from '../../support/agui-stage';
import { type SourceStage, testSourceContract } from '../../support/source-contract';

/** Writes endlessly, as fast as it is read. */
function pour(response: ServerResponse): void {
  const more = () => {
    while (response.write('<h1>Broken</h1>'.repeat(1_000)));
  };
  response.on('drain', more);
  more();
}

const S = { threadId: SESSION, runId: 'synthetic-1' };

async function stage(): Promise<SourceStage> {
  const server = await AmbientServer.start();
  let around: MemorySourceContext | null = null;
  const turn = () => around?.openWork(SESSION).turn ?? null;
  return {
    open(surroundings) {
      around = surroundings;
      return new AgUiSource({
        context: surroundings,
        url: server.url,
        sessionId: SESSION,
        history: 'all',
        headers: {},
      });
    },
    async begin() {
      server.between({ type: 'RUN_STARTED', ...S, parentRunId: 'r0' }, ...said('m1', 'The build is done.', S));
      await settled(turn).not.toBeNull();
    },
    async finish() {
      server.between({ type: 'RUN_FINISHED', ...S });
      await settled(turn).toBeNull();
    },
    goesOn: true,
  };
}

describe('the agui source', () => {
  testSourceContract(stage);
});

describe('a message', () => {
  test('is posted with the conversation, and answered in the turn that names it', async () => {
    const { server, say, turns } = await startAgUiSource();
    server.onRun = (run) => run.reply(`You said: ${run.input.messages.at(-1)?.content}`);
    expect(await say('one')).toEqual({ state: 'delivered' });
    expect(await say('two')).toEqual({ state: 'delivered' });
    await settled(() => turns().length === 2 && turns()[1]?.end).toBe('success');
    expect(turns()).toEqual([
      { kind: 'user', asked: ['m1'], said: ['You said: one'], end: 'success' },
      { kind: 'user', asked: ['m2'], said: ['You said: two'], end: 'success' },
    ]);
    const { messages, threadId } = server.inputs[1] ?? { messages: [] };
    expect(threadId).toBe(SESSION);
    expect(messages.map(({ id, role, content }) => [role, content, id.slice(0, 2)])).toEqual([
      ['user', 'one', 'm1'],
      ['assistant', 'You said: one', server.inputs[0]?.runId.slice(0, 2)],
      ['user', 'two', 'm2'],
    ]);
  });

  test('is posted once although the snapshot has other ids', async () => {
    const { server, say } = await startAgUiSource();
    const answer = { id: 'own-1', role: 'assistant', content: 'Yes.' };
    const calls = [{ id: 'c1', type: 'function', function: { name: 'x', arguments: '{}' } }];
    const messages = [answer, { id: 'own-2', role: 'assistant', content: '', toolCalls: calls }];
    server.onRun = (run) => {
      run.say({ type: 'RUN_STARTED', ...run.ids }, ...said('a1', 'Yes.', run.ids));
      run.say({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'x', parentMessageId: 'none' });
      run.say({ type: 'TOOL_CALL_RESULT', messageId: 'r1', toolCallId: 'c1', content: 'ok' });
      run.say({ type: 'MESSAGES_SNAPSHOT', messages }, { type: 'RUN_FINISHED', ...run.ids });
      run.end();
    };
    await say('one');
    await say('two');
    const { messages: posted = [] } = server.inputs[1] ?? {};
    expect(posted.filter(({ content }) => content === 'Yes.').map(({ id }) => id)).toEqual(['own-1']);
    expect(posted.flatMap(({ toolCalls = [] }) => toolCalls)).toHaveLength(1);
  });

  test('is posted alone to a server that keeps the conversation', async () => {
    const { server, say } = await startAgUiSource({ history: 'none' });
    server.onRun = (run) => run.reply('Yes.');
    await say('one');
    await say('two');
    expect(server.inputs[1]?.messages).toEqual([{ id: 'm2', role: 'user', content: 'two' }]);
  });

  test('waits for the running run, in order', async () => {
    const { server, say, turns } = await startAgUiSource();
    await say('one');
    const [two, three] = [say('two'), say('three')];
    expect(server.inputs).toHaveLength(1);
    server.onRun = (run) => run.reply('Yes.');
    server.run?.reply('Yes.');
    expect(await Promise.all([two, three])).toEqual([{ state: 'delivered' }, { state: 'delivered' }]);
    await settled(() => turns().map(({ asked, end }) => [asked[0], end])).toEqual([
      ['m1', 'success'],
      ['m2', 'success'],
      ['m3', 'success'],
    ]);
  });

  test('waits for a missing server and is delivered once', async () => {
    const { server, say, trouble } = await startAgUiSource();
    await server.stop();
    const saying = say('one');
    await settled(trouble).toMatch(/A message is queued: the agent can’t be reached at http:.*ECONNREFUSED/);
    server.onRun = (run) => run.reply('Yes.');
    await server.comeBack();
    expect(await saying).toEqual({ state: 'delivered' });
    expect(server.inputs).toHaveLength(1);
    await settled(trouble).toBeUndefined();
  });

  test('is refused with the error of the server', async () => {
    const { server, say, turns } = await startAgUiSource({ waits: { beginMs: 50 } });
    server.refusal = { status: 422, body: '{"detail":"messages: field required"}' };
    expect(await say('one')).toEqual({
      state: 'failed',
      reason: `${server.url} answered 422: messages: field required`,
    });
    server.refusal = { status: 200, body: '{}' };
    expect((await say('two')).reason).toContain('not with an event stream');
    expect(turns()).toEqual([]);
  });

  test('is refused by an endless error response, without the password of the URL', async () => {
    const server = createServer((request, response) => {
      response.writeHead(request.method === 'POST' ? 500 : 404, { 'content-type': 'text/html' });
      if (request.method === 'POST') pour(response);
      else response.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => server.closeAllConnections());
    const place = `127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { say, trouble } = await startAgUiSource({ url: `http://me:opensesame@${place}?key=opensesame` });
    const outcome = await say('one');
    expect(outcome.state).toBe('failed');
    expect(outcome.reason).toMatch(`http://${place} answered 500: <h1>Broken</h1>`);
    expect(outcome.reason?.length).toBeLessThan(600);
    await settled(trouble).toContain(`http://${place}events/s`);
    expect(`${outcome.reason} ${trouble()}`).not.toContain('opensesame');
  });

  test('is retried while the server is busy', async () => {
    const { server, say, trouble } = await startAgUiSource();
    server.refusal = { status: 409, body: 'a run is under way' };
    const saying = say('one');
    await settled(trouble).toContain('answered 409: a run is under way');
    server.refusal = null;
    server.onRun = (run) => run.reply('Yes.');
    expect(await saying).toEqual({ state: 'delivered' });
  });

  test('is not repeated after a kill with unknown outcome', async () => {
    const { server, around, source } = await startAgUiSource();
    server.refusal = { status: 503, body: '' };
    const stored = () => around.stored.get(`in-hand:${SESSION}`) ?? '';
    void source.deliver(message('m1', 'one'), false);
    await settled(stored).toContain('m1');
    // The state on disk right after the POST was sent.
    const after = new MemorySourceContext(undefined, around);
    after.stored.set(`in-hand:${SESSION}`, '[{"messageId":"m1","text":"one"}]');
    around.deafen();
    const next = new AgUiSource({
      context: after,
      url: server.url,
      sessionId: SESSION,
      history: 'all',
      headers: {},
    });
    await next.start();
    const outcome = await next.deliver(message('m1', 'one'), true);
    expect(outcome).toMatchObject({ state: 'failed', reason: expect.stringContaining('Check what it does') });
    await next.close(0, 'the test is over');
  });

  test('has a failed turn when its stream breaks or ends early', async () => {
    const { server, say, turns, around } = await startAgUiSource();
    for (const [index, broken] of (['cut', 'end', 'half'] as const).entries()) {
      await say(`${broken}`);
      const run = server.runs[index];
      run?.say({ type: 'RUN_STARTED', ...run.ids }, ...said(`a${index}`, 'Half', run.ids).slice(0, 2));
      await settled(() => turns()[index]?.said).toEqual(['Half']);
      if (broken === 'half') run?.write('data: {"type":"TEXT_MESSAGE_CONTENT","messa');
      if (broken === 'cut') run?.cut();
      else run?.end();
      await settled(() => turns()[index]?.end).toBe('failed');
    }
    expect(around.logged.filter((line) => line.includes('broke before its end'))).toHaveLength(3);
    server.onRun = (run) => run.reply('Still here.');
    await say('Are you there?');
    await settled(() => turns()[3]).toEqual({ kind: 'user', asked: ['m4'], said: ['Still here.'], end: 'success' });
  });

  test('survives frames of 10 MB and garbage', async () => {
    const { server, say, turns, around } = await startAgUiSource();
    await say('Read it');
    const { run } = server;
    run?.say({ type: 'RUN_STARTED', ...run.ids });
    run?.write('data: {"type":"TEXT_MESS\n\ndata: 17\n\ndata: null\n\nevent: x\nid: 3\ndata: []\n\n');
    run?.say({ type: 'STATE_SNAPSHOT', snapshot: { file: 'x'.repeat(10 * 1024 * 1024) } });
    run?.say(...said('a1', 'y'.repeat(10 * 1024 * 1024), run.ids), { type: 'RUN_FINISHED', ...run.ids });
    run?.end();
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()[0]?.said.join('')).toHaveLength(10 * 1024 * 1024);
    expect(around.events).toContainEqual(
      expect.objectContaining({ name: 'agui:too-much', value: expect.objectContaining({ type: 'STATE_SNAPSHOT' }) }),
    );
    expect(around.logged.join('\n')).toContain('invalid JSON');
  });
});

describe('a run on the event stream', () => {
  const told = (run: { threadId: string; runId: string }, text: string) => [
    { type: 'RUN_STARTED', ...run },
    ...said('a1', text, run),
    { type: 'RUN_FINISHED', ...run },
  ];
  const once = [{ kind: 'user', asked: ['m1'], said: ['Here.'], end: 'success' }];
  const idsOf = (server: AmbientServer) => ({ threadId: SESSION, runId: server.inputs[0]?.runId ?? '' });

  test.each([
    ['JSON', 202, '{"status":"accepted"}'],
    ['JSON that names no run', 200, '{}'],
    ['an error of something in between', 504, 'upstream timed out'],
  ])('is accepted when its POST is answered with %s', async (_what, status, body) => {
    const { server, say, turns, around } = await startAgUiSource();
    await settled(() => server.listeners).toBe(1);
    server.acceptance = { status, body, isHeld: status === 504 };
    const saying = say('one');
    await settled(() => server.inputs.length).toBe(1);
    server.between(...told(idsOf(server), 'Here.').slice(0, 2));
    expect(await saying).toEqual({ state: 'delivered' });
    server.release();
    const next = say('two');
    server.acceptance = null;
    server.between(...told(idsOf(server), 'Here.').slice(2));
    expect(await next).toEqual({ state: 'delivered' });
    expect(turns().slice(0, 1)).toEqual(once);
    expect([server.inputs.length, around.logged.filter((line) => line.includes('broke'))]).toEqual([2, []]);
  });

  test('has an unknown outcome when its POST returns JSON and no event follows', async () => {
    const { server, say, turns } = await startAgUiSource({ waits: { beginMs: 50 } });
    await settled(() => server.listeners).toBe(1);
    server.acceptance = { status: 202, body: '{}' };
    expect(await say('one')).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('no event of the run arrived on the event stream'),
      result: { mayHaveArrived: true },
    });
    expect(turns()).toEqual([]);
  });

  test('can be interrupted', async () => {
    const { server, say, turns, turn, interrupt } = await startAgUiSource();
    await settled(() => server.listeners).toBe(1);
    server.canInterrupt = false;
    server.acceptance = { status: 202, body: '{}' };
    const saying = say('one');
    await settled(() => server.inputs.length).toBe(1);
    server.between(...told(idsOf(server), 'Here.').slice(0, 2));
    await saying;
    await settled(turn).not.toBeNull();
    expect(await interrupt()).toEqual({ state: 'done' });
    await settled(() => turns()[0]?.end).toBe('cancelled');
  });

  test('does not block the next message when its POST never ends', async () => {
    const { server, say, turns } = await startAgUiSource();
    await settled(() => server.listeners).toBe(1);
    server.acceptance = { status: 200, body: '{}', isHeld: true };
    const saying = say('one');
    await settled(() => server.inputs.length).toBe(1);
    server.between(...told(idsOf(server), 'Here.'));
    expect(await saying).toEqual({ state: 'delivered' });
    expect(turns()).toEqual(once);
    server.acceptance = null;
    server.onRun = (run) => run.reply('Still here.');
    expect(await say('two')).toEqual({ state: 'delivered' });
  });
});

describe('between runs', () => {
  test('reads events before the first message, with one reader', async () => {
    const { server, turns } = await startAgUiSource();
    server.between(ambientTaskEnded('t1', 'Poll exited with code 3'), { type: 'RUN_STARTED', ...S, parentRunId: 'r0' });
    server.between(...said('a1', 'The poll has failed.', S), { type: 'RUN_FINISHED', ...S });
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toEqual([
      {
        kind: 'between-run',
        trigger: { kind: 'task', taskIds: ['t1'] },
        asked: [],
        said: ['The poll has failed.'],
        end: 'success',
      },
    ]);
    expect(server.mostListeners).toBe(1);
  });

  test('reopens a broken stream forever and continues its turn', async () => {
    const { server, turns, trouble } = await startAgUiSource();
    for (let times = 0; times < 40; times += 1) {
      await settled(() => server.listeners).toBe(1);
      server.cutListeners();
      await settled(() => server.listeners).toBe(0);
    }
    await settled(() => server.listeners).toBe(1);
    server.between({ type: 'RUN_STARTED', ...S, parentRunId: 'r0' }, ...said('a1', 'It', S).slice(0, 2));
    await settled(() => turns()[0]?.said).toEqual(['It']);
    server.cutListeners();
    await settled(() => server.listeners).toBe(0);
    await settled(() => server.listeners).toBe(1);
    server.between(...said('a1', ' works', S).slice(1), { type: 'RUN_FINISHED', ...S });
    await settled(trouble).toBeUndefined();
    await settled(() => turns().map(({ said: words, end }) => [words.join(''), end])).toEqual([
      ['It works', 'success'],
    ]);
    expect(server.mostListeners).toBe(1);
  });

  test('retries a stream that worked before, and notes the gap', async () => {
    const { server, around, tasks, trouble } = await startAgUiSource({ waits: { longestMs: 20, missingMs: 300_000 } });
    server.tasks = null;
    await settled(() => server.listeners).toBe(1);
    server.between(ambientTaskStarted('t1', 'Poll'));
    await settled(tasks).toEqual(['t1']);
    server.streams = 'none';
    server.cutListeners();
    await settled(trouble).toContain('the event stream answered 404. Reconnecting.');
    server.streams = 'thread';
    await settled(() => server.listeners).toBe(1);
    const notices = () => around.events.flatMap(({ name, value }) => (name === 'interlude:notice' ? [value] : []));
    await settled(notices).toEqual([{ text: expect.stringMatching(/between \d{4}-.* and .* UTC/), tone: 'warning' }]);
    expect(tasks()).toEqual(['t1']);
  });

  test('retries a missing stream ever less often', async () => {
    const server = await AmbientServer.start();
    server.streams = 'none';
    await startAgUiSource({ waits: { longestMs: 20, missingMs: 300_000 } }, server);
    await settled(() => server.asked.filter((path) => path === 'GET /events').length).toBe(1);
    server.streams = 'thread';
    await settled(() => server.listeners).toBe(1);
  });

  test('reports a server without a stream with the tried paths', async () => {
    const server = await AmbientServer.start();
    server.streams = 'none';
    const { trouble } = await startAgUiSource({}, server);
    await settled(trouble).toContain(`no event stream at ${server.url}events/s or ${server.url}events (404)`);
    server.streams = 'all';
    await settled(trouble).toBeUndefined();
    expect(server.listeners).toBe(1);
  });

  test('counts a gateway that refuses everything as an outage', async () => {
    const { server, source, say, trouble } = await startAgUiSource();
    server.gatewayStatus = { events: 503 };
    server.cutListeners();
    await settled(trouble).toContain('answered 503');
    expect(await source.reach()).toBeNull();
    expect(await say('one')).toEqual({ state: 'delivered' });
    server.gatewayStatus = { events: 503, others: 502 };
    expect(await source.reach()).toMatch(/its gateway answers 502$/);
  });

  test('counts a server that still sends events as reachable', async () => {
    const { server, source, say, turns } = await startAgUiSource();
    expect(await say('one')).toEqual({ state: 'delivered' });
    server.drain();
    expect(await source.reach()).toMatch(/ECONNREFUSED$/);
    server.run?.say({ type: 'RUN_STARTED', ...server.run.ids }, ...said('m', 'Still here.', server.run.ids));
    await settled(() => turns()[0]?.said).toEqual(['Still here.']);
    expect(await source.reach()).toBeNull();
    expect(await source.reach()).toMatch(/ECONNREFUSED$/);
  });

  test('drops what a server replays to the next runner', async () => {
    const { server, around, source } = await startAgUiSource();
    const all = [
      ambientTaskStarted('t1', 'Poll'),
      ambientTaskEnded('t1'),
      { type: 'RUN_STARTED', ...S, parentRunId: 'r0' },
    ];
    await settled(() => server.listeners).toBe(1);
    server.between(...all, ...said('a1', 'Polled', S), { type: 'RUN_FINISHED', ...S });
    server.between({ type: 'RUN_STARTED', ...S, runId: 'open' }, ...said('a2', 'Half', S).slice(0, 1));
    await settled(() => around.openWork(SESSION).turn?.runId).toBe('open');
    const after = new MemorySourceContext(undefined, around);
    around.deafen();
    await source.close(0, 'killed');
    await settled(() => server.listeners).toBe(0);
    const told = () => after.events.slice(around.events.length);
    const next = new AgUiSource({
      context: after,
      url: server.url,
      sessionId: SESSION,
      history: 'all',
      headers: {},
    });
    await next.start();
    onTestFinished(() => next.close(0, 'the test is over'));
    await settled(() => server.listeners).toBe(1);
    server.between(...all, ...said('a1', 'Polled', S), { type: 'RUN_FINISHED', ...S });
    server.between({ type: 'RUN_STARTED', ...S, runId: 'open' }, ...said('a2', 'Half', { ...S, runId: 'open' }));
    server.between({ type: 'RUN_FINISHED', ...S, runId: 'open' });
    await settled(() =>
      told()
        .filter(({ type }) => type.startsWith('RUN_'))
        .map(({ type, parentRunId }) => [type, parentRunId]),
    ).toEqual([
      ['RUN_ERROR', undefined],
      ['RUN_STARTED', 'open'],
      ['RUN_FINISHED', undefined],
    ]);
    expect(JSON.stringify(told())).not.toMatch(/t1|Polled/);
  });

  test('leaves a notice when the next runner can’t open the stream at once', async () => {
    const { server, around, source } = await startAgUiSource();
    server.between({ type: 'RUN_STARTED', ...S }, { type: 'RUN_FINISHED', ...S });
    await settled(() => around.stored.get(`agui-ended:${SESSION}`)).toContain(S.runId);
    await source.close(0, 'ended');
    server.streams = 'none';
    const after = new MemorySourceContext(undefined, around);
    const next = new AgUiSource({
      ...{ context: after, url: server.url, sessionId: SESSION, history: 'all', headers: {}, random: () => 0 },
      waits: { longestMs: 20, missingMs: 20 },
    });
    await next.start();
    onTestFinished(() => next.close(0, 'the test is over'));
    await settled(() => next.sessions[0]?.trouble).toContain('no event stream');
    server.streams = 'thread';
    await settled(() => JSON.stringify(after.events)).toContain('No signal from the agent');
  });

  test('reads a named events path', async () => {
    const { server } = await startAgUiSource({ eventsPath: '/events/{threadId}' });
    await settled(() => server.asked).toContain('GET /events/s');
  });

  test('emits only its own thread of a shared stream', async () => {
    const server = await AmbientServer.start();
    server.streams = 'all';
    const { turns } = await startAgUiSource({}, server);
    const other = { threadId: 'other', runId: 'x' };
    server.between({ type: 'RUN_STARTED', ...other }, ...said('a0', 'No', other), { type: 'RUN_FINISHED', ...other });
    server.between({ type: 'RUN_STARTED', ...S, parentRunId: 'r' }, ...said('a1', 'Yes', S), {
      type: 'RUN_FINISHED',
      ...S,
    });
    await settled(() => turns().map((turn) => turn.said[0])).toEqual(['Yes']);
  });

  test('emits a between-run turn after the running user turn', async () => {
    const { server, say, turns } = await startAgUiSource();
    await say('one');
    const { run } = server;
    run?.say({ type: 'RUN_STARTED', ...run.ids });
    server.between({ type: 'RUN_STARTED', ...S, parentRunId: 'r0' }, ...said('a1', 'Meanwhile', S), {
      type: 'RUN_FINISHED',
      ...S,
    });
    run?.say(...said('a2', 'Answer', run.ids), { type: 'RUN_FINISHED', ...run.ids });
    run?.end();
    await settled(() => turns().map((turn) => [turn.kind, turn.said[0], turn.end])).toEqual([
      ['user', 'Answer', 'success'],
      ['between-run', 'Meanwhile', 'success'],
    ]);
  });
});

describe('a turn', () => {
  test('is interrupted at the server, else by its stream', async () => {
    const { server, say, turns, interrupt, turn } = await startAgUiSource();
    await say('one');
    await settled(turn).not.toBeNull();
    expect(await interrupt('another')).toMatchObject({ state: 'failed' });
    expect(await interrupt(turn()?.runId)).toEqual({ state: 'done' });
    expect(server.interrupts).toBe(1);
    server.run?.reply('Stopped.');
    await settled(() => turns()[0]?.end).toBe('cancelled');
    server.canInterrupt = false;
    await say('two');
    await settled(turn).not.toBeNull();
    expect(await interrupt(turn()?.runId)).toEqual({ state: 'done' });
    await settled(() => turns()[1]?.end).toBe('cancelled');
    expect(await interrupt()).toEqual({ state: 'failed', reason: 'nothing is running now' });
  });

  test('is cut off at the deadline of close', async () => {
    const { source, say, turns, around } = await startAgUiSource();
    await say('one');
    await source.close(0, 'the runner was stopped');
    expect(turns()[0]?.end).toBe('cancelled');
    expect(around.events.some(({ name }) => name === 'session:ended')).toBe(false);
  });
});

describe('a task', () => {
  test('is stopped at the server and settled by its list', async () => {
    const { server, say, stop, tasks } = await startAgUiSource();
    await say('one');
    server.run?.say(
      { type: 'RUN_STARTED', ...server.run.ids },
      ambientTaskStarted('t1', 'Poll'),
      ambientTaskStarted('t2', 'Build'),
    );
    await settled(tasks).toEqual(['t1', 't2']);
    server.tasks = [
      { task_id: 't1', status: 'stopped' },
      { task_id: 't2', status: 'running' },
    ];
    expect(await stop('t1')).toEqual({ state: 'done' });
    expect(server.stopped).toEqual(['t1']);
    await settled(tasks).toEqual(['t2']);
    expect(await stop('t1')).toMatchObject({ state: 'failed' });
    server.tasks = null;
    expect(await stop('t2')).toEqual({ state: 'failed', reason: 'this server can’t stop tasks' });
  });

  test('that ended while the runner was away is settled at startup', async () => {
    const { server, say, around, tasks, source } = await startAgUiSource();
    await say('one');
    server.run?.say(ambientTaskStarted('t1', 'Poll'));
    await settled(tasks).toEqual(['t1']);
    server.tasks = [{ task_id: 't1', status: 'failed', summary: 'exit code 3' }];
    const after = new MemorySourceContext(undefined, around);
    around.deafen();
    await source.close(0, 'killed');
    const next = new AgUiSource({
      context: after,
      url: server.url,
      sessionId: SESSION,
      history: 'all',
      headers: {},
    });
    await next.start();
    await settled(() => after.openWork(SESSION).tasks).toEqual([]);
    expect(after.events.at(-1)?.value).toMatchObject({ task_id: 't1', status: 'failed', summary: 'exit code 3' });
    await next.close(0, 'the test is over');
  });
});

describe('a question', () => {
  const args = { questions: [{ question: 'Which branch?', options: ['main', 'dev'] }] };
  const ask = (run: AmbientServer['run']) => {
    if (run === undefined) return;
    const call = { toolCallId: 'q1', thread_id: SESSION, run_id: run.ids.runId };
    run.say(
      { type: 'RUN_STARTED', ...run.ids },
      { type: 'TOOL_CALL_START', toolCallName: 'AskUserQuestion', ...call },
      { type: 'TOOL_CALL_ARGS', delta: JSON.stringify(args), ...call },
      { type: 'TOOL_CALL_END', ...call },
      { type: 'RUN_FINISHED', ...run.ids },
    );
    run.end();
  };

  test('that ends a run is answered by a tool result', async () => {
    const { server, say, requests, reply } = await startAgUiSource();
    await say('one');
    ask(server.run);
    await settled(requests).toEqual(['q1']);
    expect(await reply('q1', { 'Which branch?': 'main' })).toEqual({ state: 'done' });
    await settled(() => server.inputs.length).toBe(2);
    expect(server.inputs[1]?.messages.slice(1)).toEqual([
      expect.objectContaining({ role: 'assistant', toolCalls: [expect.objectContaining({ id: 'q1' })] }),
      { id: 'q1/answer', role: 'tool', toolCallId: 'q1', content: 'main' },
    ]);
    await settled(requests).toEqual([]);
    expect((await reply('q1', { 'Which branch?': 'dev' })).reason).toMatch(/already answered|no longer waits/);
  });

  test('is also answered by the next message', async () => {
    const { server, say, requests, turns } = await startAgUiSource();
    await say('one');
    ask(server.run);
    await settled(requests).toEqual(['q1']);
    server.onRun = (run) => run.reply('On dev, then.');
    expect(await say('dev')).toEqual({ state: 'delivered' });
    expect(server.inputs[1]?.messages.at(-1)).toEqual({ id: 'm2', role: 'tool', toolCallId: 'q1', content: 'dev' });
    await settled(() => turns()[1]).toEqual({ kind: 'user', asked: ['m2'], said: ['On dev, then.'], end: 'success' });
    expect(requests()).toEqual([]);
  });

  test('from an interrupt is answered by resume, and messages wait', async () => {
    const { server, say, requests, allow, turns } = await startAgUiSource();
    await say('one');
    const { run } = server;
    const call = { toolCallId: 'c1' };
    run?.say(
      { type: 'RUN_STARTED', ...run.ids },
      { type: 'TOOL_CALL_START', toolCallName: 'shell', ...call },
      { type: 'TOOL_CALL_ARGS', delta: '{"command":"rm -r build"}', ...call },
      { type: 'TOOL_CALL_END', ...call },
      {
        type: 'RUN_FINISHED',
        ...run.ids,
        outcome: { type: 'interrupt', interrupts: [{ id: 'i1', reason: 'tool_call', toolCallId: 'c1' }] },
      },
    );
    run?.end();
    await settled(requests).toEqual(['i1']);
    const saying = say('two');
    server.onRun = (next) => next.reply('Done.');
    expect(await allow('i1')).toEqual({ state: 'done' });
    expect(await saying).toEqual({ state: 'delivered' });
    expect(server.inputs.map(({ resume }) => resume)).toEqual([
      undefined,
      [{ interruptId: 'i1', status: 'resolved', payload: { approved: true } }],
      undefined,
    ]);
    await settled(() => turns().length === 3 && turns()[2]?.end).toBe('success');
    expect(requests()).toEqual([]);
  });
});
