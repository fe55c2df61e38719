import { fieldsOf } from '@interlude/protocol/fields';
import { promptText } from '@interlude/runner/adapters/acp/content';
import type { AcpSourceOptions } from '@interlude/runner/sources/acp/acp-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { custom, ID, openAcpSource, startAcpSource, texts, turnEnds } from '@/tests/support/acp-agent';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { ScriptedAcpAgent, SESSION } from '../../support/acp-agent';
import { type SourceStage, testSourceContract } from '../../support/source-contract';

describe('the acp source', () => {
  testSourceContract(async (): Promise<SourceStage> => {
    const agent = await ScriptedAcpAgent.open();
    let around: MemorySourceContext | null = null;
    let opened = 0;
    const heard: string[] = [];
    const record: AcpSourceOptions['record'] = ({ dir, msg }) => {
      const { method, params } = fieldsOf(msg);
      if (dir === 'out' && method === 'session/prompt') heard.push(promptText(fieldsOf(params).prompt));
    };
    const turn = () => around?.openWork(ID).turn ?? null;
    return {
      async open(surroundings) {
        around = surroundings;
        opened += 1;
        return await openAcpSource(agent, surroundings, { record });
      },
      async begin() {
        await expect.poll(() => agent.of('session/new').length, { interval: 5 }).toBe(opened);
        await expect.poll(() => around?.stored.get(`acp-session:${ID}`)).toContain(SESSION);
        agent.say('I woke up.');
        await expect.poll(turn, { interval: 5 }).not.toBeNull();
      },
      async finish() {
        agent.update({ sessionUpdate: 'state_update', state: 'idle' });
        await expect.poll(turn, { interval: 5 }).toBeNull();
      },
      heard: () => heard,
    };
  });
});

describe('messages', () => {
  test('wait in order for the previous prompt, each with its own turn', async () => {
    const { agent, around, say, until, source } = await startAcpSource();
    expect(await say('m1', 'first')).toEqual({ state: 'delivered' });
    const later = Promise.all([say('m2', 'second'), say('m3', 'third')]);
    await until(() => source.sessions[0]?.pendingMessages).toBe(3);
    await agent.prompted(1);
    expect(agent.prompts).toEqual(['first']);
    for (const [index, text] of ['first', 'second', 'third'].entries()) {
      await agent.prompted(index + 1);
      agent.say(`Reply to the ${text}.`);
      agent.answerPrompt();
    }
    expect(await later).toEqual([{ state: 'delivered' }, { state: 'delivered' }]);
    await until(() => turnEnds(around.events)).toEqual([
      ['success', ['m1']],
      ['success', ['m2']],
      ['success', ['m3']],
    ]);
    expect(texts(around.events)).toEqual(['Reply to the first.', 'Reply to the second.', 'Reply to the third.']);
    await until(() => source.sessions[0]?.pendingMessages).toBe(0);
  });

  test('are prompted at once to an agent that queues them', async () => {
    const capabilities = { _meta: { claudeCode: { promptQueueing: true } } };
    const { agent, say } = await startAcpSource({ capabilities });
    await Promise.all([say('m1', 'first'), say('m2', 'second')]);
    await agent.prompted(2);
    expect(agent.prompts).toEqual(['first', 'second']);
  });

  test('are not answered one late after a between-run turn', async () => {
    const { agent, around, say, until } = await startAcpSource();
    await say('m1', 'first');
    await agent.prompted(1);
    agent.say('One.');
    agent.answerPrompt();
    await until(() => turnEnds(around.events)).toHaveLength(1);
    agent.say('A task has ended.');
    await until(() => texts(around.events)).toHaveLength(2);
    await say('m2', 'second');
    await agent.prompted(2);
    agent.say('Two.');
    agent.answerPrompt();
    await until(() => turnEnds(around.events)).toEqual([
      ['success', ['m1']],
      ['success', []],
      ['success', ['m2']],
    ]);
  });

  test('cancelled unread by an interrupt are prompted again when idle', async () => {
    const capabilities = { _meta: { claudeCode: { promptQueueing: true } } };
    const { agent, say, interrupt, until, around, turn } = await startAcpSource({ capabilities });
    await say('m1', 'first');
    await agent.prompted(1);
    agent.say('I begin.');
    await until(turn).not.toBeNull();
    await say('m2', 'second');
    await agent.prompted(2);
    const ids = agent.of('session/prompt').map(({ id }) => id);
    expect(await interrupt()).toMatchObject({ state: 'done' });
    await until(() => agent.of('session/cancel')).toHaveLength(1);
    agent.send({ id: ids[1], result: { stopReason: 'cancelled' } });
    agent.send({ id: ids[0], result: { stopReason: 'cancelled' } });
    await agent.prompted(3);
    expect(agent.prompts).toEqual(['first', 'second', 'second']);
    await until(() => turnEnds(around.events)).toEqual([['cancelled', ['m1']]]);
  });
});

test('interrupted before any content end their turn', async () => {
  const { agent, say, interrupt, until, around, source } = await startAcpSource({ name: 'qwen-code' });
  await say('m1', 'first');
  await agent.prompted(1);
  await interrupt();
  await until(() => agent.of('session/cancel')).toHaveLength(1);
  agent.answerPrompt({ stopReason: 'cancelled' });
  await until(() => turnEnds(around.events)).toEqual([['cancelled', ['m1']]]);
  expect(source.sessions[0]?.pendingMessages).toBe(0);
  expect(agent.prompts).toEqual(['first']);
});

describe('permissions', () => {
  test('are opened between prompts too, and answered with an option of the agent', async () => {
    const { agent, around, decide, until } = await startAcpSource();
    await until(() => agent.of('session/new')).toHaveLength(1);
    agent.asks(0, 'call-1', 'touch marker');
    await until(() => custom(around.events, 'request:opened')).toHaveLength(1);
    const [request = {}] = custom(around.events, 'request:opened');
    expect(request).toMatchObject({ tool_use_id: 'call-1', input: { command: 'touch marker' } });
    expect(request.expires_at).toBeGreaterThan(Date.now());
    expect(await decide({ ...request, input: { command: 'rm -rf /' } }, {})).toMatchObject({ state: 'failed' });
    expect(await decide(request, { optionId: 'once' })).toEqual({ state: 'done' });
    await until(() => agent.answers(0)).toHaveLength(1);
    expect(agent.answers(0)[0]?.result).toEqual({ outcome: { outcome: 'selected', optionId: 'once' } });
    expect(custom(around.events, 'request:resolved')).toMatchObject([{ outcome: 'allowed' }]);
    expect(await decide(request, { optionId: 'once' })).toMatchObject({ state: 'failed' });
  });

  test('without an answer in time are denied and expire', async () => {
    const { agent, around, until } = await startAcpSource({}, { answerWithinMs: 30 });
    await until(() => agent.of('session/new')).toHaveLength(1);
    agent.asks('uuid-1', 'call-1', 'touch marker');
    await until(() => agent.answers('uuid-1')).toHaveLength(1);
    expect(agent.answers('uuid-1')[0]?.result).toMatchObject({ outcome: { optionId: 'no' } });
    expect(custom(around.events, 'request:resolved')).toMatchObject([{ outcome: 'expired' }]);
  });

  test('are cancelled by an interrupt', async () => {
    const { agent, around, interrupt, until } = await startAcpSource();
    await until(() => agent.of('session/new')).toHaveLength(1);
    agent.asks(0, 'call-1', 'touch marker');
    await until(() => custom(around.events, 'request:opened')).toHaveLength(1);
    await interrupt();
    await until(() => agent.answers(0)[0]?.result).toEqual({ outcome: { outcome: 'cancelled' } });
    expect(custom(around.events, 'request:resolved')).toMatchObject([{ outcome: 'cancelled' }]);
  });
});

describe('an agent that crashes', () => {
  const past = [
    { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'first' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'One.' } },
  ];

  test('fails its turn, loads its session and repeats nothing', async () => {
    const { agent, around, say, until, source } = await startAcpSource({ past });
    await say('m1', 'first');
    await agent.prompted(1);
    agent.say('One.');
    await until(() => texts(around.events)).toEqual(['One.']);
    process.kill(source.sessions[0]?.process?.pid ?? 0, 'SIGKILL');
    await until(() => agent.of('session/load')).toHaveLength(1);
    expect(fieldsOf(agent.of('session/load')[0]?.params).sessionId).toBe(SESSION);
    expect(turnEnds(around.events)).toEqual([['failed', ['m1']]]);
    await say('m2', 'second');
    await agent.prompted(2);
    expect(agent.prompts).toEqual(['first', 'second']);
    agent.say('Two.');
    agent.answerPrompt();
    await until(() => turnEnds(around.events)).toEqual([
      ['failed', ['m1']],
      ['success', ['m2']],
    ]);
    expect(texts(around.events)).toEqual(['One.', 'Two.']);
    expect(custom(around.events, 'interlude:notice')[0]?.text).toMatch(/ended by SIGKILL.*Restarting in 0\.5 s/);
  });

  test('gets unprocessed messages again unless its history has them', async () => {
    // A turn of this agent begins with its first text, not with the prompt.
    const name = 'qwen-code';
    const { agent, say, until, source, turn } = await startAcpSource({ name, past });
    await say('m1', 'first');
    await agent.prompted(1);
    const unheard = say('m2', 'second');
    expect(turn()).toBeNull();
    process.kill(source.sessions[0]?.process?.pid ?? 0, 'SIGKILL');
    await agent.prompted(2);
    expect(await unheard).toEqual({ state: 'delivered' });
    expect(agent.prompts).toEqual(['first', 'second']);
    await until(() => source.sessions[0]?.pendingMessages).toBe(1);
  });

  test('starts a new conversation with a notice if it can’t load one', async () => {
    const { agent, around, until, source } = await startAcpSource();
    await until(() => agent.of('session/new')).toHaveLength(1);
    await until(() => source.sessions[0]?.process?.state).toBe('running');
    agent.hangUp();
    await until(() => agent.of('session/new')).toHaveLength(2);
    await until(() => custom(around.events, 'interlude:notice').at(-1)?.text).toMatch(
      /could not load the earlier conversation/,
    );
  });
});

describe('setting up', () => {
  test.each([
    ['new', null],
    ['load', SESSION],
  ])('gives the agent Interlude’s tools with session/%s', async (how, nativeId) => {
    const agent = await ScriptedAcpAgent.open({ past: [] });
    const around = new MemorySourceContext();
    const server = { name: 'interlude', command: 'node', args: ['mcp'] };
    const toolServer = (sessionId: string) => ({ ...server, env: { TICKET: `of ${sessionId}` } });
    Object.assign(around, { toolServer });
    const memory = { sessionId: ID, nativeId, note: null, cwd: process.cwd(), pid: null, running: false };
    const source = await openAcpSource(agent, around, { memory });
    await source.start();
    onTestFinished(() => source.close(0, 'the test is over'));
    const mcpServers = [{ ...server, env: [{ name: 'TICKET', value: `of ${ID}` }] }];
    await expect.poll(() => agent.of(`session/${how}`)[0]?.params).toMatchObject({ mcpServers });
  });

  const wantsKey = {
    authMethods: [
      { id: 'oauth', name: 'Log in with Google' },
      { id: 'gemini-api-key', name: 'Gemini API key' },
    ],
    answer: (method: string, _: unknown, times: number) =>
      method === 'session/new' && times === 1
        ? { error: { code: -32_000, message: 'Authentication required' } }
        : undefined,
  };

  test('signs in with the only API key if the agent requires it', async () => {
    const { agent, until } = await startAcpSource(wantsKey);
    await until(() => agent.of('session/new')).toHaveLength(2);
    expect(agent.of('authenticate').map(({ params }) => params)).toEqual([{ methodId: 'gemini-api-key' }]);
  });

  test('names the sign-in methods without an obvious choice', async () => {
    const authMethods = [{ id: 'oauth', name: 'Log in with Google' }];
    const { gaveUp, around, until } = await startAcpSource({ ...wantsKey, authMethods });
    await until(gaveUp).toMatch(/requires signing in.*choose one with --auth: oauth \(Log in with Google\)/);
    expect(custom(around.events, 'session:ended')[0]?.reason).toMatch(/--auth/);
  });

  test('sets offered modes and models, and lists them otherwise', async () => {
    const configOptions = [
      {
        id: 'model',
        category: 'model',
        currentValue: 'a',
        options: [
          { value: 'a', name: 'A' },
          { value: 'b', name: 'B' },
        ],
      },
      { id: 'mode', category: 'mode', currentValue: 'ask', options: [{ value: 'ask', name: 'Ask' }] },
    ];
    const answer = (method: string) => (method === 'session/new' ? { sessionId: SESSION, configOptions } : undefined);
    const set = await startAcpSource({ answer }, { model: 'b' });
    await set
      .until(() => set.agent.of('session/set_config_option')[0]?.params)
      .toEqual({
        ...{ sessionId: SESSION, configId: 'model', value: 'b' },
      });
    await set.until(() => set.source.sessions[0]).toMatchObject({ mode: 'Ask', provider: 'played 1' });
    const unknown = await startAcpSource({ answer }, { mode: 'yolo' });
    await unknown.until(unknown.gaveUp).toMatch(/no mode "yolo"; it offers: ask/);
  });

  test('reports an agent that does not respond', async () => {
    let isMute = true;
    const answer = (method: string) => (isMute && method === 'initialize' ? null : undefined);
    const { agent, source, lines, until } = await startAcpSource({ answer }, { patienceMs: 50 });
    await until(() => source.sessions[0]?.trouble).toMatch(
      /has opened no session for 0\.05 s\. Check that it speaks ACP/,
    );
    expect(lines.join('\n')).toMatch(/^warn .*node has opened no session/m);
    isMute = false;
    const [initialize] = agent.of('initialize');
    agent.send({ id: initialize?.id, result: { protocolVersion: 1 } });
    await until(() => agent.of('session/new')).toHaveLength(1);
    await until(() => source.sessions[0]?.trouble).toBeUndefined();
  });

  test('reports a missing program at once', async () => {
    const { gaveUp, until } = await startAcpSource({}, { command: ['/nowhere/agent'] });
    await until(gaveUp).toMatch(/\/nowhere\/agent can’t be started: .*ENOENT/);
  });
});

describe('output of the agent', () => {
  test('is read past unreadable lines, which are kept and logged', async () => {
    const { agent, around, lines, until, source } = await startAcpSource();
    await until(() => source.sessions[0]?.provider).toBe('played 1');
    await until(() => around.stored.get(`acp-session:${ID}`)).toContain(SESSION);
    agent.write('Debug: loading\n{"half":\n[1,2]\n"text"\n');
    agent.send({ id: 4711, result: {} });
    agent.send({ method: '_new/thing', params: { sessionId: SESSION } });
    agent.say('Still here.');
    await until(() => texts(around.events)).toEqual(['Still here.']);
    expect(lines.filter((line) => line.startsWith('warn')).join('\n')).toMatch(
      /unreadable line \(not JSON\): Debug: loading[\s\S]*invalid JSON-RPC: \[1,2\][\s\S]*unknown request/,
    );
    expect(around.events.filter(({ type }) => type === 'RAW').length).toBe(6);
  });

  test('gets “method not found” for an unsupported request', async () => {
    const { agent, until } = await startAcpSource();
    await until(() => agent.of('session/new')).toHaveLength(1);
    agent.send({ id: 'x', method: 'fs/read_text_file', params: { sessionId: SESSION, path: '/etc/passwd' } });
    await until(() => fieldsOf(agent.answers('x')[0]?.error).code).toBe(-32_601);
  });

  test('may have ten megabytes in one frame', async () => {
    const { agent, around, say, until } = await startAcpSource();
    await say('m1', 'first');
    await agent.prompted(1);
    const long = 'x'.repeat(10 * 1024 * 1024);
    agent.say(long);
    agent.answerPrompt();
    await until(() => turnEnds(around.events)).toEqual([['success', ['m1']]]);
    expect(texts(around.events).join('')).toBe(long);
  });

  test('may end within a frame, which fails the turn only', async () => {
    const { agent, around, say, until, lines, source } = await startAcpSource({ past: [] });
    await say('m1', 'first');
    await agent.prompted(1);
    agent.write('{"jsonrpc":"2.0","method":"session/upd');
    agent.hangUp();
    await until(() => turnEnds(around.events)).toEqual([['failed', ['m1']]]);
    expect(lines.join('\n')).toMatch(/unreadable line \(cut off\): \{"jsonrpc"/);
    await until(() => source.sessions[0]?.process?.state).toBe('running');
  });
});
