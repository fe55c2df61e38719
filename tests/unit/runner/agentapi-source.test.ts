import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentApiServer } from '@interlude/runner/sources/agentapi/agentapi-server';
import { AgentApiSource } from '@interlude/runner/sources/agentapi/agentapi-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { messageTo, QUICK, settled, startAgentApiSource } from '@/tests/support/agentapi-server';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { AgentApiEmulator, menu } from '../../support/agentapi-server';
import { type SourceStage, testSourceContract } from '../../support/source-contract';

/** An idle agent with an earlier conversation. */
async function resting(): Promise<AgentApiEmulator> {
  const server = await AgentApiEmulator.start();
  server.replies('Welcome');
  return server;
}

async function stage(): Promise<SourceStage> {
  const server = await resting();
  let around: MemorySourceContext | null = null;
  let source: AgentApiSource | null = null;
  const turn = () => around?.openWork('s').turn ?? null;
  return {
    open(surroundings) {
      around = surroundings;
      source = new AgentApiSource({
        context: surroundings,
        url: server.url,
        sessionId: 's',
        headers: {},
        waits: QUICK,
      });
      return source;
    },
    async begin() {
      await settled(() => source?.sessions[0]?.state).toBe('still');
      const outcome = await source?.deliver(messageTo('m0', 'Build it'));
      expect(outcome).toEqual({ state: 'delivered' });
      server.says('Building');
      await settled(turn).not.toBeNull();
    },
    async finish() {
      server.replies('Building\nBuilt.');
      await settled(turn).toBeNull();
    },
    goesOn: true,
  };
}

describe('the agentapi source', () => {
  testSourceContract(stage);
});

test('a polled answer is dropped if the stream has overtaken it', async () => {
  const passed: object[] = [];
  const server = createServer(({ url }, response) => {
    if (url === '/status') api.steps += 1;
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const api = new AgentApiServer({
    url: `http://127.0.0.1:${port}`,
    headers: {},
    pass: async (_, msg) => void passed.push(msg),
    signal: new AbortController().signal,
  });
  expect(await api.poll()).toBeNull();
  expect(passed).toEqual([{ answer: 'messages', status: 200, body: {} }]);
});

describe('a message', () => {
  test('is typed trimmed, and answered in a turn that ends when the screen is stable', async () => {
    const { server, say, turns, facts, lines } = await startAgentApiSource({}, await resting());
    expect(await say('  Build it\n')).toEqual({ state: 'delivered' });
    expect(server.typed).toEqual(['Build it']);
    await settled(() => facts()?.state).toBe('busy');
    server.says('Building   \n');
    server.says('Building\nStill building');
    server.replies('Building\nBuilt.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toEqual([{ kind: 'user', asked: ['m1'], said: 'Building\nBuilt.', end: 'success' }]);
    expect(lines().at(-1)).toContain('"inferred":true');
    expect(facts()).toMatchObject({ state: 'still', provider: 'claude (AgentAPI)', pendingMessages: 0 });
  });

  test('waits while the agent works, without counting attempts', async () => {
    const { server, say, turns } = await startAgentApiSource({}, await resting());
    await say('one');
    server.says('Working');
    const [two, three] = [say('two'), say('three')];
    await settled(turns).toHaveLength(1);
    expect(server.typed).toEqual(['one']);
    server.onMessage = (content) => setImmediate(() => server.replies(`Did ${content}.`));
    server.still();
    expect(await Promise.all([two, three])).toEqual([{ state: 'delivered' }, { state: 'delivered' }]);
    await settled(() => turns().map(({ asked, said, end }) => [asked[0], said, end])).toEqual([
      ['m1', 'Working', 'success'],
      ['m2', 'Did two.', 'success'],
      ['m3', 'Did three.', 'success'],
    ]);
  });

  test('waits when AgentAPI finds the screen unstable', async () => {
    const { server, say, facts } = await startAgentApiSource({}, await resting());
    await settled(() => facts()?.state).toBe('still');
    server.status = 'running';
    const saying = say('one');
    await settled(() => facts()?.trouble).toContain('A message is queued: the agent is working');
    server.status = 'stable';
    expect(await saying).toEqual({ state: 'delivered' });
    expect(server.typed).toEqual(['one']);
    await settled(() => facts()?.trouble).toBeUndefined();
  });

  test('is not typed into a question that appears meanwhile', async () => {
    const server = await resting();
    server.hasScreen = false;
    const { say, facts } = await startAgentApiSource({}, server);
    await settled(() => facts()?.state).toBe('still');
    server.screenNow('Run rm -r build? (y/n)');
    const saying = say('one');
    await settled(() => facts()?.trouble).toContain('A message is queued: the terminal is waiting for an answer');
    expect(server.typed).toEqual([]);
    server.replies('Left alone.');
    expect(await saying).toEqual({ state: 'delivered' });
    expect(server.typed).toEqual(['one']);
  });

  test('is refused with a reason if empty', async () => {
    const { server, say } = await startAgentApiSource({}, await resting());
    expect(await say(' \n ')).toEqual({ state: 'failed', reason: 'the message is empty' });
    expect(server.typed).toEqual([]);
  });

  test('is delivered once listed, before its POST is answered', async () => {
    const server = await resting();
    server.transport = 'acp';
    const { say, turns, facts } = await startAgentApiSource({ waits: { ...QUICK, pollMs: 30 } }, server);
    expect(await say('Build it')).toEqual({ state: 'delivered' });
    server.says('Building');
    await settled(() => turns()[0]?.said).toBe('Building');
    // The status request hangs with the lock, which does no harm.
    expect(facts()?.trouble).toBeUndefined();
    server.replies('Built.');
    server.unlock();
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toHaveLength(1);
  });

  test('is not typed twice when it arrived before a kill', async () => {
    const server = await resting();
    server.transport = 'acp';
    const before = await startAgentApiSource({}, server);
    await settled(() => before.facts()?.state).toBe('still');
    server.onMessage = () => {
      before.around.deafen();
      server.cut();
    };
    void before.say('Build it');
    await settled(() => server.typed).toEqual(['Build it']);
    const stored = new MemorySourceContext(undefined, before.around);
    await before.source.close(0, 'killed');
    const { source, turns } = await startAgentApiSource({}, server, stored);
    expect(await source.deliver(messageTo('m1', 'Build it'))).toEqual({ state: 'delivered' });
    server.replies('Built.');
    server.unlock();
    await settled(() => turns()).toEqual([{ kind: 'user', asked: ['m1'], said: 'Built.', end: 'success' }]);
    expect(server.typed).toEqual(['Build it']);
  });

  test('is typed by the next runner when a kill prevented it', async () => {
    const server = await resting();
    const stored = new MemorySourceContext();
    stored.stored.set('in-hand:s', '[{"messageId":"m1","text":"Build it"}]');
    const { source } = await startAgentApiSource({}, server, stored);
    await settled(() => server.typed).toEqual(['Build it']);
    expect(await source.deliver(messageTo('m1', 'Build it'))).toEqual({ state: 'delivered' });
    expect(server.typed).toEqual(['Build it']);
  });

  test('waits for a missing server, with a note on the page', async () => {
    const server = await resting();
    const { say, facts, turns } = await startAgentApiSource({}, server);
    await settled(() => facts()?.state).toBe('still');
    await server.stop();
    const saying = say('one');
    await settled(() => facts()?.trouble).toMatch(/No events from the agent.*can’t be reached/s);
    await server.listen();
    expect(await saying).toEqual({ state: 'delivered' });
    server.replies('Yes.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(server.typed).toEqual(['one']);
  });

  test('typed by another client starts a turn that names it', async () => {
    const { server, turns, facts } = await startAgentApiSource({}, await resting());
    await settled(() => facts()?.state).toBe('still');
    await fetch(`${server.url}/message`, { method: 'POST', body: JSON.stringify({ content: 'hello', type: 'user' }) });
    server.replies('Hello.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()[0]).toMatchObject({ kind: 'user', asked: ['0/1'] });
  });
});

describe('between runs', () => {
  test('turns additions to the last message into a between-run turn', async () => {
    const { server, say, turns } = await startAgentApiSource({}, await resting());
    await say('Run the poll in the background');
    server.replies('It runs.\nI tell you when it ends.');
    await settled(() => turns()[0]?.end).toBe('success');
    server.says('It runs.\nI tell you when it ends.\n\nThe poll has');
    server.replies('It runs.\nI tell you when it ends.\n\nThe poll has failed.');
    await settled(() => turns()[1]?.end).toBe('success');
    server.replies('It runs.\nI tell you when it ends.\n\nThe poll has failed.\nI try again.');
    await settled(() => turns()[2]?.end).toBe('success');
    expect(turns().map(({ kind, said }) => [kind, said])).toEqual([
      ['user', 'It runs.\nI tell you when it ends.'],
      ['between-run', 'The poll has failed.'],
      ['between-run', 'I try again.'],
    ]);
  });

  test('reopens a closed stream forever and drops its replay', async () => {
    const { server, say, turns, lines } = await startAgentApiSource({}, await resting());
    await say('Build it');
    server.says('Building');
    for (let times = 0; times < 20; times += 1) {
      await settled(() => server.listeners).toBe(1);
      server.cut();
    }
    await settled(() => server.listeners).toBe(1);
    server.replies('Building\nBuilt.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toEqual([{ kind: 'user', asked: ['m1'], said: 'Building\nBuilt.', end: 'success' }]);
    expect(lines().filter((line) => line.includes('Welcome'))).toHaveLength(1);
  });

  test('emits text written while the runner was away', async () => {
    const server = await resting();
    const first = await startAgentApiSource({}, server);
    await first.say('Run it');
    server.replies('It runs.');
    await settled(() => first.turns()[0]?.end).toBe('success');
    const stored = new MemorySourceContext(undefined, first.around);
    await first.source.close(0, 'stopped');
    server.replies('It runs.\nIt has ended.');
    const { turns } = await startAgentApiSource({}, server, stored);
    await settled(() => turns()[1]?.end).toBe('success');
    expect(turns()[1]).toEqual({ kind: 'between-run', asked: [], said: 'It has ended.', end: 'success' });
  });

  test('fails the open turn of a lost server, and continues when it is back', async () => {
    const server = await resting();
    const { source, say, turns, lines, facts } = await startAgentApiSource({}, server);
    await say('Build it');
    await server.stop();
    const reason = await source.reach();
    expect(reason).toBe(`no answer at ${server.url}/: ECONNREFUSED`);
    await source.lost(reason ?? '');
    expect(turns()[0]?.end).toBe('failed');
    expect(lines().join('\n')).toContain(`The agent is gone (${reason}). Retrying.`);
    expect(facts()?.state).toBeUndefined();
    await server.listen();
    await settled(() => source.reach()).toBeNull();
    server.replies('Built after all.');
    await settled(() => turns()[1]?.said).toBe('Built after all.');
  });

  test('polls a server that refuses its stream', async () => {
    const server = await resting();
    const { say, turns, facts, lines } = await startAgentApiSource({}, server);
    await settled(() => facts()?.state).toBe('still');
    server.hasEvents = false;
    server.cut();
    await settled(() => facts()?.trouble).toContain('polled every second');
    expect(await say('Build it')).toEqual({ state: 'delivered' });
    server.says('Building');
    await settled(() => turns()[0]?.said).toBe('Building');
    server.replies('Building\nBuilt.');
    await settled(() => turns()[0]?.end).toBe('success');
    server.hasEvents = true;
    await settled(() => facts()?.trouble).toBeUndefined();
    expect(await say('And now?')).toEqual({ state: 'delivered' });
    server.replies('Nothing.');
    await settled(() => turns()[1]?.end).toBe('success');
    expect(turns()).toEqual([
      { kind: 'user', asked: ['m1'], said: 'Building\nBuilt.', end: 'success' },
      { kind: 'user', asked: ['m2'], said: 'Nothing.', end: 'success' },
    ]);
    expect(lines().filter((line) => line.includes('Welcome'))).toHaveLength(1);
  });

  test('polls a server that never has a stream', async () => {
    const server = await resting();
    server.hasEvents = false;
    const { say, turns, lines } = await startAgentApiSource({}, server);
    expect(await say('Build it')).toEqual({ state: 'delivered' });
    server.replies('Built.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toEqual([{ kind: 'user', asked: ['m1'], said: 'Built.', end: 'success' }]);
    expect(lines().filter((line) => line.includes('Welcome'))).toHaveLength(1);
  });

  test('counts a server that blocks during a turn as reachable', async () => {
    const server = await resting();
    server.transport = 'acp';
    const { source, say, turns, facts } = await startAgentApiSource({}, server);
    await settled(() => facts()?.state).toBe('still');
    server.hasEvents = false;
    server.cut();
    await settled(() => facts()?.trouble).toContain('polled every second');
    const said = say('Build it');
    await settled(() => server.typed).toEqual(['Build it']);
    expect(await source.reach()).toBeNull();
    server.replies('Built.');
    server.unlock();
    expect(await said).toEqual({ state: 'delivered' });
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()).toEqual([{ kind: 'user', asked: ['m1'], said: 'Built.', end: 'success' }]);
  });

  test('ends the turn of a replaced process and uses new ids', async () => {
    const server = await resting();
    const { say, turns, lines, facts } = await startAgentApiSource({}, server);
    await say('one');
    server.says('Working');
    await settled(() => turns()[0]?.said).toBe('Working');
    server.startProcess();
    await settled(() => turns()[0]?.end).toBe('failed');
    server.replies('Welcome back');
    await settled(() => facts()?.state).toBe('still');
    server.onMessage = () => setImmediate(() => server.replies('Done anew.'));
    await say('two');
    await settled(() => turns()[1]?.end).toBe('success');
    expect(turns()[1]).toMatchObject({ asked: ['m2'], said: 'Done anew.' });
    expect(lines().join('\n')).toContain('restarted and may have lost');
  });

  test('emits errors of the terminal once', async () => {
    const { server, lines, facts } = await startAgentApiSource({}, await resting());
    await settled(() => facts()?.state).toBe('still');
    server.fails('the API key is wrong');
    server.cut();
    await settled(() => server.listeners).toBe(1);
    server.fails('and it still is');
    await settled(() => lines().filter((line) => line.includes('API key') || line.includes('still is'))).toHaveLength(
      2,
    );
  });

  test('survives garbage, an event of 10 MB and an endless frame', async () => {
    // A poll may be faster than a stream of 10 MB.
    const waits = { ...QUICK, settleMs: 1_000 };
    const { server, say, turns, around } = await startAgentApiSource({ waits }, await resting());
    await say('Read it');
    server.write('event: message_update\ndata: {"id":"x"}\n\ndata: 7\n\nevent: y\ndata: nothing\n\n');
    server.says('x'.repeat(10 * 1024 * 1024));
    server.write('event: message_update\ndata: {"id":2,"role":"agent","mess');
    server.cut();
    await settled(() => server.listeners).toBe(1);
    server.replies('Read.');
    await settled(() => turns()[0]?.end).toBe('success');
    expect(turns()[0]?.said).toBe('Read.');
    expect(around.logged.join('\n')).toContain('invalid JSON');
  });

  test('explains a rejected host name', async () => {
    const server = await resting();
    server.allowsHost = false;
    const { facts } = await startAgentApiSource({}, server);
    await settled(() => facts()?.trouble).toContain('start it with --allowed-hosts 127.0.0.1:');
    server.allowsHost = true;
    await settled(() => facts()?.trouble).toBeUndefined();
  });
});

describe('a choice on the screen', () => {
  const OPTIONS = ['Yes', 'Yes, and don’t ask again for rm commands', 'No, tell it what to do'];

  test.each([
    ['2', 1, 'allowed'],
    ['3', 2, 'denied'],
  ])('is a request, and the answer %s is typed as keys', async (optionId, index, outcome) => {
    const server = await resting();
    const { say, requests, opened, choose, turns, lines } = await startAgentApiSource({}, server);
    await say('Clean up');
    server.says('I clean up.');
    let chosen: number | null = null;
    menu(server, 'Do you want to run rm -r build?', OPTIONS, (at) => {
      chosen = at;
      server.shows('');
      server.replies('I clean up.\nDone.');
    });
    server.still();
    await settled(requests).toHaveLength(1);
    expect(opened()).toMatchObject({ kind: 'permission', title: 'Do you want to run rm -r build?' });
    expect(opened()?.options?.map(({ kind, isLasting = false }) => [kind, isLasting])).toEqual([
      ['allow', false],
      ['allow', true],
      ['deny', false],
    ]);
    // Waits, because a message would cancel the request.
    const saying = say('And then?');
    expect(await choose(optionId)).toEqual({ state: 'done' });
    expect(chosen).toBe(index);
    await settled(requests).toEqual([]);
    expect(lines().join('\n')).toContain(`"outcome":"${outcome}"`);
    expect(await saying).toEqual({ state: 'delivered' });
    expect(server.typed).toEqual(['Clean up', 'And then?']);
    await settled(() => turns()[0]?.said).toBe('I clean up.\nDone.');
  });

  test('is refused once the terminal no longer shows it', async () => {
    const server = await resting();
    const { say, requests, choose } = await startAgentApiSource({}, server);
    await say('Clean up');
    menu(server, 'Do you want to run rm -r build?', OPTIONS, () => {});
    server.still();
    await settled(requests).toHaveLength(1);
    const [first] = requests();
    menu(server, 'Do you want to run rm -r /?', OPTIONS, () => {});
    // The approved question is gone, whether or not the runner has seen that.
    expect((await choose('2')).state).toBe('failed');
    expect(server.keys).not.toContain('\r');
    server.still();
    await settled(() => requests().length === 1 && requests()[0] !== first).toBe(true);
    expect(await choose('1')).toEqual({ state: 'done' });
    expect(server.keys.at(-1)).toBe('\r');
  });

  test.each([
    ['with the stream of the screen', true],
    ['without it', false],
  ])('is not answered in another question with the same options, %s', async (_how, hasScreen) => {
    const server = await resting();
    server.hasScreen = hasScreen;
    const { say, requests, opened, choose } = await startAgentApiSource({}, server);
    await say('Clean up');
    const asking = (command: string) => `${command}\n\n\nDo it? (y/n)`;
    if (hasScreen) server.shows(asking('rm -r build'));
    server.replies(asking('rm -r build'));
    await settled(requests).toHaveLength(1);
    expect(opened()?.input).toEqual({ screen: asking('rm -r build') });
    // The runner sees this only when it checks the screen.
    server.screenNow(asking('rm -r ~'));
    expect(await choose('y')).toEqual({ state: 'failed', reason: 'the terminal no longer shows this question' });
    expect(server.keys).toEqual([]);
  });

  test('is read from the last message without a screen stream', async () => {
    const server = await resting();
    server.hasScreen = false;
    const { say, requests, choose } = await startAgentApiSource({}, server);
    await say('Install it');
    server.replies('Installing\nOverwrite? [y/N]');
    await settled(requests).toHaveLength(1);
    server.onKeys = () => server.replies('Installing\nOverwrite? [y/N] n\nLeft alone.');
    expect(await choose('n')).toEqual({ state: 'done' });
    expect(server.keys).toEqual(['n\r']);
    await settled(requests).toEqual([]);
  });
});

test('interrupts a turn with Escape', async () => {
  const { server, say, turns, interrupt, turn } = await startAgentApiSource({}, await resting());
  expect(await interrupt()).toEqual({ state: 'failed', reason: 'nothing is running now' });
  await say('Build it');
  server.says('Building');
  await settled(turn).not.toBeNull();
  expect(await interrupt('another')).toMatchObject({ state: 'failed' });
  expect(await interrupt(turn()?.runId)).toEqual({ state: 'done' });
  expect(server.keys).toEqual(['\x1b']);
  server.still();
  await settled(() => turns()[0]?.end).toBe('cancelled');
});
