import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { mcpCommands } from '@interlude/runner/host/own-program.mjs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startAcpModel } from '../support/acp-model';
import { homeOf, missingAgent, REAL_ACP_AGENTS } from '../support/acp-real-agents';
import { startCli } from '../support/cli';
import { CODEX, codexStage } from '../support/codex-stage';
import { LocalDashboard } from '../support/local-dashboard';
import { missingOpencode, opencodeStage } from '../support/opencode-stage';
import { answering, assistantText, messages, Operator, requests } from '../support/operator';

/**
 * The real Codex, OpenCode, Gemini CLI and Qwen Code use Interlude's tools in their own sessions. Claude Code:
 * agent-tools.test.ts.
 */

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

const REPORT = { state: 'complete', summary: 'The build is green.' };
const SUBAGENTS = 'these tools are for the session’s own agent';

/** A tool call in one agent's model format. */
type Call<Reply> = (tool: string, args: object) => Reply;

/** Reports, answers messages and lets a subagent report. Echoes the tool results. */
function brain<Reply extends { text?: string }>(call: Call<Reply>, spawn: Reply | null = null, heard?: string[]) {
  return ({ said: asked, results }: { said: string; results: string[] }): Reply => {
    const result = plain(results.at(-1) ?? '');
    heard?.push(result);
    if (result.includes('Waiting for a reply')) {
      const obligations = JSON.parse(result.slice(result.indexOf('['), result.lastIndexOf(']') + 1)) as Obligation[];
      // A message answered in this turn may still be listed briefly.
      const asked = obligations.find(({ text }) => text.startsWith('ANSWER'));
      return asked === undefined
        ? call('list_obligations', {})
        : call('reply', { messageId: asked.messageId, text: `Answer to ${asked.text}` });
    }
    if (result.includes('No message waits')) return call('list_obligations', {});
    // Qwen Code discovers MCP tools after its start.
    if (result.includes('is not registered')) return call('report_status', REPORT);
    if (result !== '') return { text: `It said: ${result}` } as Reply;
    const [word] = [...asked.matchAll(/ANSWER|REPORT|SPAWN/g)].at(-1) ?? [];
    if (word === 'ANSWER') return call('list_obligations', {});
    if (word === 'REPORT') return call('report_status', REPORT);
    return word === 'SPAWN' && spawn !== null ? spawn : ({ text: 'OK.' } as Reply);
  };
}

interface Obligation {
  messageId: string;
  text: string;
}

/** Gemini CLI passes results to its model as JSON. */
function plain(result: string): string {
  return result.startsWith('{"') ? Object.values(JSON.parse(result) as Record<string, string>).join('\n') : result;
}

const reportOf = async (agentId: string) =>
  (await dashboard.request<{ agent: AgentSummary }>(`/agents/${encodeURIComponent(agentId)}`)).agent.status?.report;

/** Requests a report and expects it in the turn and in the agent's status. */
async function reports(operator: Operator) {
  await expect.poll(() => operator.session()).not.toBeNull();
  const id = await operator.send('REPORT');
  const turn = await operator.until('its report', (turns) => {
    const found = answering(turns, id);
    return found?.state === 'finished' && assistantText(found).includes('Reported: complete.') && found;
  });
  const { agentId = '' } = (await operator.session()) ?? {};
  expect(await reportOf(agentId)).toMatchObject({ ...REPORT, turnId: turn.id });
}

/** Sends messages to all sessions at once and expects each answer in its own session. */
async function eachAnswersItsOwn(operators: Operator[]) {
  const asked = await Promise.all(
    operators.map(async (one, index) => ({ one, id: await one.send(`ANSWER ${index}`) })),
  );
  for (const [index, { one, id }] of asked.entries()) {
    const turn = await one.until('its answer', (turns) => {
      const found = answering(turns, id);
      return found?.state === 'finished' && found;
    });
    expect(assistantText(turn)).toContain(`Answer to ANSWER ${index}`);
    await expect.poll(async () => (await one.session())?.owedCount).toBe(0);
  }
}

describe.skipIf(!existsSync(CODEX))('Codex with its MCP configuration', () => {
  const call: Call<{ text: string; call?: { name: string; namespace: string; args: object } }> = (name, args) => ({
    text: 'I call.',
    call: { name, namespace: 'mcp__interlude', args },
  });
  const spawn = {
    text: 'I spawn.',
    call: { name: 'spawn_agent', namespace: 'multi_agent_v1', args: { message: 'REPORT' } },
  };
  const tooled = async () => {
    const heard: string[] = [];
    const stage = await codexStage(dashboard, brain(call, spawn, heard));
    expect(await stage.shell(mcpCommands(stage.dataDir).Codex)).toMatchObject({ exitCode: 0 });
    return { ...stage, heard };
  };

  test('reports and answers without a permission request under a runner; its subagent is rejected', async () => {
    const stage = await tooled();
    const { operator } = stage;
    const policy = ['--approval-policy', 'untrusted', '--sandbox', 'read-only'];
    await stage.runner('--start', '--command', CODEX, ...policy, '--session', stage.sessionId);
    await reports(operator);
    await eachAnswersItsOwn([operator]);
    await operator.send('SPAWN');
    await expect.poll(() => stage.heard.join('\n')).toContain(SUBAGENTS);
    expect(requests(await operator.turns())).toEqual([]);
  });

  test('does the same in each thread of a terminal', async () => {
    const stage = await tooled();
    const { socket, begin } = await stage.daemon();
    await stage.runner('--socket', socket);
    const operators = [stage.operatorOf(await begin('Hello.')), stage.operatorOf(await begin('Hello.'))];
    for (const operator of operators) await operator.finished(1);
    await eachAnswersItsOwn(operators);
  });
});

describe.skipIf(missingOpencode() !== null)('OpenCode with its MCP configuration', () => {
  test('reports and answers in each session of one server; its subagent is rejected', async () => {
    const call = (tool: string, args: object) => ({ text: 'I call.', call: { name: `interlude_${tool}`, args } });
    const about = { description: 'Look', prompt: 'REPORT', subagent_type: 'general' };
    const spawn = { text: 'I spawn.', call: { name: 'task', args: about } };
    const heard: string[] = [];
    const stage = await opencodeStage(dashboard, brain(call, spawn, heard), {}, { hasTools: true });
    const { operator, runner, another } = stage;
    await runner();
    await reports(operator);
    const other = await another();
    await eachAnswersItsOwn([operator]);
    await expect.poll(() => other.session()).not.toBeNull();
    await eachAnswersItsOwn([other]);
    await operator.send('SPAWN');
    await expect.poll(() => heard.join('\n')).toContain(SUBAGENTS);
  });
});

describe.each(['gemini', 'qwen', 'opencode'] as const)('%s over ACP', (name) => {
  const agents = process.env.INTERLUDE_TEST_AGENTS_DIR;
  const missing = missingAgent(agents, REAL_ACP_AGENTS[name]);

  test.skipIf(missing !== null)('has the tools without configuration', async () => {
    const toolOf = { gemini: 'mcp_interlude_', qwen: 'mcp__interlude__', opencode: 'interlude_' }[name];
    const call = (tool: string, args: object) => {
      const named = `${toolOf}${tool}`;
      // Qwen Code's model calls later-discovered tools through a separate tool.
      const made =
        name === 'qwen' ? { name: 'tool_call', args: { name: named, arguments: args } } : { name: named, args };
      return { text: 'I call.', call: made };
    };
    const { cwd, command, env } = await homeOf(agents ?? '', REAL_ACP_AGENTS[name], await startAcpModel(brain(call)));
    const [agentId, sessionId] = [`acp-${name}`, `session-${name}`];
    const of = { INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
    const dataDir = join(dirname(cwd), 'data');
    const flags = ['--agent', agentId, '--session', sessionId, '--cwd', cwd];
    const runner = startCli(['runner', 'acp', ...flags, '--', ...command], {
      // Gemini CLI starts MCP servers only in trusted folders.
      ...{ ...env, ...of, INTERLUDE_DATA_DIR: dataDir, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    });
    onTestFinished(async () => {
      runner.process.kill('SIGINT');
      runner.process.kill('SIGINT');
      await runner.ended;
    });
    const operator = new Operator(dashboard, sessionId);
    const allowing = allowAll(operator);
    await reports(operator);
    await eachAnswersItsOwn([operator]);
    expect(messages(await operator.turns(), 'user')).toHaveLength(2);
    await allowing();
  });
});

/** Allows every tool request. @returns stops it */
function allowAll(operator: Operator): () => Promise<void> {
  let isOver = false;
  const answered = new Set<string>();
  const going = (async () => {
    while (!isOver) {
      for (const { id, digest, options = [], outcome } of requests(await operator.turns())) {
        const option = options.find(({ kind }) => kind === 'allow');
        if (outcome !== null || answered.has(id) || option === undefined) continue;
        answered.add(id);
        await operator.answer(id, { behavior: 'allow', optionId: option.id, digest });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return async () => {
    isOver = true;
    await going;
  };
}
