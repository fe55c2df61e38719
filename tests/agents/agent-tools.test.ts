import type { AgentSummary, Turn } from '@interlude/protocol/read-models';
import { agent, type Context, say, tool, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claudeStage, quickStep } from '../support/claude-stage';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { messages, requests } from '../support/operator';
import { terminalStage } from '../support/terminal-stage';

/** The real Claude Code uses Interlude's tools without permission requests; the results show in the dashboard. */

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

const summary = 'The build is green.';
const link = 'https://example.org/pull/1';
const report = (state: string) => quickStep([tool('mcp__interlude__report_status', { state, summary, link })]);

/** Polls pending replies until this message is listed, answers it with the tool, and ends the turn. */
const replyTo =
  (question: string) =>
  ({ results }: Context) => {
    const text = results.at(-1)?.text ?? '';
    if (text.includes('shown to its sender')) return quickStep([say('That is all.')]);
    const list = text.includes('[') ? text.slice(text.indexOf('['), text.lastIndexOf(']') + 1) : '[]';
    const obligation = (JSON.parse(list) as { messageId: string; text: string }[]).find((one) => one.text === question);
    if (obligation === undefined) return quickStep([tool('mcp__interlude__list_obligations', {})], { wait: 200 });
    return quickStep([
      tool('mcp__interlude__reply', { messageId: obligation.messageId, text: 'Answered with the tool.' }),
    ]);
  };
const talk = (turns: readonly Turn[]) => messages(turns, 'assistant').map(({ text }) => text);
const reported = async (agentId: string) => {
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await fetch(`${server.url}/api/v1/agents/${agentId}`, { headers });
  return ((await response.json()) as { agent: AgentSummary }).agent.status?.report;
};

describe('Claude Code with Interlude’s tools', () => {
  test('reports its status and answers a message without a permission request', async () => {
    const stage = await claudeStage(server, {
      turns: [turn(/START/, report('complete'))],
      otherwise: replyTo('START'),
    });
    const { operator } = stage;
    await stage.runner('--permission-mode', 'default');
    await operator.send('START');
    const turns = await operator.finished(1);
    expect(turns.map(({ state }) => state)).toEqual(['finished']);
    expect(talk(turns)).toEqual(['Answered with the tool.', 'That is all.']);
    expect(requests(turns)).toEqual([]);
    expect(await reported(stage.agentId)).toMatchObject({ state: 'complete', summary, link, turnId: turns[0]?.id });
    await expect.poll(async () => (await operator.session())?.owedCount).toBe(0);
    expect(stage.problems()).toEqual([]);
  });

  test('has its subagent’s calls rejected', async () => {
    const heard: string[] = [];
    const stage = await claudeStage(server, {
      turns: [
        turn(
          /START/,
          quickStep([tool('Agent', { description: 'Look', prompt: 'AGENT-A', subagent_type: 'general-purpose' })]),
          quickStep([say('That is all.')]),
        ),
      ],
      agents: [
        agent(/AGENT-A/, report('complete'), ({ results }: Context) => {
          heard.push(results.at(-1)?.text ?? '');
          return quickStep([say('Refused.')]);
        }),
      ],
    });
    await stage.runner();
    await stage.operator.send('START');
    await stage.operator.finished(1);
    // the turn that started the subagent may finish first
    await expect.poll(() => heard.join('\n')).toContain('for the main agent of the session');
    expect(await reported(stage.agentId)).toBeUndefined();
  });

  test('does the same through `interlude mcp` in a terminal', async () => {
    const question = 'How far are you?';
    const stage = await terminalStage(
      server,
      { turns: [turn(/START/, report('working'), report('complete'))], otherwise: replyTo(question) },
      { hasTools: true },
    );
    const { operator } = stage;
    stage.type('START');
    await operator.until('an open turn', (turns) => turns.some(({ state }) => state === 'open'));
    await operator.send(question);
    const turns = await operator.finished(1);
    expect(turns.map(({ state }) => state)).toEqual(['finished']);
    expect(talk(turns)).toEqual(['Answered with the tool.', 'That is all.']);
    const { agentId = '' } = (await operator.session()) ?? {};
    expect(await reported(agentId)).toMatchObject({ state: 'complete', summary, link, turnId: turns[0]?.id });
    await expect.poll(async () => (await operator.session())?.owedCount).toBe(0);
    expect(stage.problems()).toEqual([]);
  });
});
