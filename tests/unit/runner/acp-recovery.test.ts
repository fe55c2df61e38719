import { fieldsOf } from '@interlude/protocol/fields';
import { RUNNER_VERSION } from '@interlude/runner/host/own-program.mjs';
import { describe, expect, test } from 'vitest';
import { custom, startAcpSource, turnEnds } from '@/tests/support/acp-agent';
import { SESSION } from '../../support/acp-agent';

const LOST = { error: { code: -32_002, message: 'Resource not found', data: { sessionId: SESSION } } };
const kinds = [
  ['where turns begin with the prompt', 'some-agent'],
  ['where turns begin with the agent’s text', 'qwen-code'],
] as const;

describe('an agent that lost its session', () => {
  test.each(kinds)('loads it again and gets the message again, %s', async (_, name) => {
    const answer = (method: string, __: unknown, times: number) =>
      method === 'session/prompt' && times === 1 ? LOST : undefined;
    const { agent, around, say, until, lines } = await startAcpSource({ name, past: [], answer });
    await say('m1', 'first');
    await agent.prompted(2);
    expect(agent.of('session/load').map(({ params }) => fieldsOf(params).sessionId)).toEqual([SESSION]);
    expect(agent.prompts).toEqual(['first', 'first']);
    agent.say('One.');
    agent.answerPrompt();
    await until(() => turnEnds(around.events)).toEqual([['success', ['m1']]]);
    expect(agent.starts).toBe(1);
    expect(custom(around.events, 'interlude:notice')[0]?.text).toMatch(/lost its session and loaded it again/);
    expect(lines.join('\n')).toMatch(/^warn the agent lost its session/m);
  });

  test('does not reload it for a missing file', async () => {
    const error = { code: -32_002, message: 'Resource not found: file:///a', data: { uri: 'file:///a' } };
    const answer = (method: string) => (method === 'session/prompt' ? { error } : undefined);
    const { agent, around, say, until } = await startAcpSource({ past: [], answer });
    await say('m1', 'first');
    await until(() => turnEnds(around.events)).toEqual([['failed', ['m1']]]);
    expect(agent.of('session/load')).toEqual([]);
  });
});

describe('initialize', () => {
  test('names the version of Interlude and its capabilities', async () => {
    const { agent, until } = await startAcpSource();
    await until(() => agent.of('session/new')).toHaveLength(1);
    expect(agent.of('initialize')[0]?.params).toMatchObject({
      protocolVersion: 1,
      clientInfo: { name: 'interlude', version: RUNNER_VERSION },
      clientCapabilities: { session: { notices: {}, compaction: {} } },
    });
  });

  test.each([2, 0, '1.0', null])('gives up on the version %j, with one sentence', async (version) => {
    const answer = (method: string) =>
      method === 'initialize' ? { protocolVersion: version, agentInfo: { name: 'x' } } : undefined;
    const { agent, gaveUp, until } = await startAcpSource({ answer });
    await until(gaveUp).toMatch(/^the agent speaks ACP version .*; install a version/);
    expect(agent.of('session/new')).toEqual([]);
    expect(agent.starts).toBe(1);
  });
});
