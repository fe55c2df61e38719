import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { custom, startAcpSource, turnEnds } from '@/tests/support/acp-agent';
import { SESSION } from '../../support/acp-agent';

const LOST = { error: { code: -32_002, message: 'Resource not found', data: { sessionId: SESSION } } };
const kinds = [
  ['where turns begin with the prompt', 'some-agent'],
  ['where turns begin with the agent’s text', 'qwen-code'],
] as const;

describe('a running agent that lost its session', () => {
  test.each(kinds)('is restarted when it can’t load the session, and gets the message again, %s', async (_, name) => {
    let isBroken = true;
    const answer = (method: string) => {
      if (method === 'initialize') isBroken = agent.starts < 2;
      return isBroken && (method === 'session/load' || method === 'session/prompt') ? LOST : undefined;
    };
    const { agent, around, say, until } = await startAcpSource({ name, past: [], answer });
    await say('m1', 'first');
    await until(() => agent.starts).toBe(2);
    await agent.prompted(2);
    agent.say('One.');
    agent.answerPrompt();
    await until(() => turnEnds(around.events).at(-1)).toEqual(['success', ['m1']]);
    const notices = custom(around.events, 'interlude:notice').map(({ text }) => text);
    expect(notices).toEqual([expect.stringMatching(/lost its session: .*Resource not found.*Restarting/)]);
  });

  test('is given up with one sentence when a restart does not help', async () => {
    const answer = (method: string) => (method === 'session/prompt' ? LOST : undefined);
    const { agent, around, say, until, gaveUp } = await startAcpSource({ past: [], answer });
    const said = say('m1', 'first');
    await until(gaveUp).toMatch(/lost its session, and neither a reload nor a restart helped: Resource/);
    expect(await said).toEqual({ state: 'delivered' });
    expect(agent.starts).toBe(2);
    expect(custom(around.events, 'session:ended')).toHaveLength(1);
    expect(await say('m2', 'second')).toMatchObject({ state: 'failed' });
  });

  test('is restarted when it does not answer in time', async () => {
    const answer = (method: string, _: unknown, times: number) =>
      times > 1 ? undefined : method === 'session/prompt' ? LOST : method === 'session/load' ? null : undefined;
    const { agent, say, until } = await startAcpSource({ past: [], answer }, { patienceMs: 100 });
    await say('m1', 'first');
    await until(() => agent.starts).toBe(2);
    await agent.prompted(2);
  });
});

test('a background command known only by its process ends with it', async () => {
  const { agent, around, until } = await startAcpSource({ name: 'gemini-cli' });
  await until(() => around.stored.get('acp-session:s')).toContain(SESSION);
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
  const call = { sessionUpdate: 'tool_call_update', toolCallId: 'c1', title: 'poll', kind: 'execute' };
  const text = `Command moved to background (PID: ${child.pid}). Output hidden. Press Ctrl+B to view.`;
  agent.update({ ...call, status: 'in_progress' });
  agent.update({ ...call, status: 'completed', content: [{ type: 'content', content: { type: 'text', text } }] });
  await until(() => custom(around.events, 'task:updated')[0]?.summary).toMatch(`Runs as process ${child.pid}`);
  expect(custom(around.events, 'task:completed')).toEqual([]);
  child.stdin.end();
  await once(child, 'exit');
  await expect
    .poll(() => custom(around.events, 'task:completed'), { interval: 20 })
    .toMatchObject([{ task_id: 'c1', status: 'completed', summary: expect.stringMatching(/has ended/) }]);
});
