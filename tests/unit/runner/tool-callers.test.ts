import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { NOTHING_OPEN, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { ToolCaller } from '@interlude/runner/host/control-port';
import { byLsof, findListener } from '@interlude/runner/host/process-lookup';
import type { SessionFacts } from '@interlude/runner/host/source';
import { type CallerRule, RunningCalls, ToolCallers } from '@interlude/runner/host/tool-callers';
import type { SessionTools } from '@interlude/runner/mcp/agent-tools';
import { clientOf } from '@interlude/runner/sources/agentapi/kind';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const REPORT = { state: 'complete', summary: 'Done.' };
const AGENT = 4711;
const hasLsof = spawnSync('lsof', ['-v']).status === 0;

/** The callers of a runner with these sessions, all in the process AGENT. */
function callers(
  rule: CallerRule | undefined,
  sessionIds: string[],
  open: Partial<OpenWork> = {},
  provider?: { value: string },
) {
  const calls = new RunningCalls();
  const sessions = sessionIds.map(
    (sessionId): SessionFacts => ({
      ...{ sessionId, attachments: [] },
      process: { state: 'running', pid: AGENT, exitCode: null },
    }),
  );
  const tools = new Map(sessionIds.map((id) => [id, { id } as unknown as SessionTools]));
  const own = new ToolCallers({
    ...{ rule, calls, sessions: () => sessions.map((one) => (provider ? { ...one, provider: provider.value } : one)) },
    openWork: () => ({ ...NOTHING_OPEN, ...open }),
    caughtUp: async () => undefined,
    toolsOf: (sessionId) => tools.get(sessionId) as SessionTools,
  });
  return {
    own,
    say: (sessionId: string, ...events: AgUiEvent[]) =>
      calls.record(
        sessionId,
        events.map((event) => ({ occurredAt: 1, event })),
      ),
    /** @returns the session, or the reason for a refusal */
    async ask(caller: Partial<ToolCaller> = {}) {
      const about = { tool: 'report_status', input: REPORT, client: null, ids: [], ticketOf: null } as const;
      const asked = own.ownerOf({ ...about, pids: [1, AGENT], ...caller });
      await vi.runAllTimersAsync();
      const owner = await asked;
      return 'refusal' in owner ? owner.refusal : (owner.tools as unknown as { id: string }).id;
    },
  };
}

const start = (toolCallId: string, args: object, more: object = {}): AgUiEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'mcp__interlude__report_status', ...more },
  { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) },
];
const result = (toolCallId: string): AgUiEvent => ({ type: 'TOOL_CALL_RESULT', toolCallId, content: '' });

const UNSEEN = 'no session of this runner is making this call';
const SEVERAL = 'two agents are making the same call; call it again';
const SUBAGENT = /^these tools are for the main agent of the session/;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a process with several sessions', () => {
  const BY_CALL: CallerRule = { by: 'call' };

  test('matches a call by its arguments', async () => {
    const { say, ask } = callers(BY_CALL, ['a', 'b']);
    say('a', ...start('c1', { state: 'working', summary: 'I build.' }));
    say('b', ...start('c2', { state: 'complete', summary: ' Done. ' }));
    expect(await ask()).toBe('b');
  });

  test('matches a call by its id when two look the same', async () => {
    const { say, ask } = callers(BY_CALL, ['a', 'b']);
    for (const id of ['a', 'b']) say(id, ...start(`call-${id}`, REPORT));
    expect(await ask({ ids: ['thread', 'call-b'] })).toBe('b');
    expect(await ask()).toBe(SEVERAL);
  });

  test('refuses a call that another session makes too', async () => {
    const { own, say } = callers(BY_CALL, ['a', 'b']);
    say('a', ...start('c1', {}, { toolCallName: 'interlude_list_obligations' }));
    const about = { input: {}, client: null, ids: [], ticketOf: null, pids: [AGENT] } as const;
    const asked = own.ownerOf({ ...about, tool: 'list_obligations' });
    await vi.advanceTimersByTimeAsync(40);
    say('b', ...start('c2', {}, { toolCallName: 'interlude_list_obligations' }));
    await vi.runAllTimersAsync();
    expect(await asked).toEqual({ at: 0, refusal: SEVERAL });
  });

  test('waits for a call that its session has not shown yet', async () => {
    const { own, say } = callers(BY_CALL, ['a']);
    const about = { tool: 'report_status', input: REPORT, client: null, ids: [], ticketOf: null } as const;
    const asked = own.ownerOf({ ...about, pids: [AGENT] });
    await vi.advanceTimersByTimeAsync(500);
    say('a', ...start('c1', { state: 'complete', summary: 'Do' }));
    await vi.advanceTimersByTimeAsync(500);
    say('a', { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: JSON.stringify(REPORT), metadata: WHOLE });
    await vi.runAllTimersAsync();
    expect(await asked).toMatchObject({ at: 0, tools: { id: 'a' } });
  });

  const WHOLE = { interlude: { whole: true as const } };
  const over: [string, AgUiEvent[]][] = [
    ['has its result', [result('c1')]],
    ['was in a turn that is over', [{ type: 'RUN_FINISHED', threadId: 'a', runId: 'r' }]],
    ['was in a session that has ended', [{ type: 'CUSTOM', name: 'session:ended', value: {} }]],
  ];
  test.each(over)('refuses a call that no session makes: it %s', async (_why, events) => {
    const { say, ask } = callers(BY_CALL, ['a']);
    say('a', ...start('c1', REPORT), ...events);
    expect(await ask()).toBe(UNSEEN);
  });

  test('refuses calls of subagents, and equal calls of the agent meanwhile', async () => {
    const { say, ask } = callers(BY_CALL, ['a']);
    say('a', ...start('c1', REPORT, { subagentRunId: 'run-1' }));
    expect(await ask()).toMatch(SUBAGENT);
    say('a', ...start('c2', REPORT));
    expect(await ask()).toBe(SEVERAL);
    expect(await ask({ ids: ['c1'] })).toMatch(SUBAGENT);
    expect(await ask({ ids: ['c2'] })).toBe('a');
    say('a', { type: 'CUSTOM', name: 'task:completed', value: { task_id: 't', run_id: 'run-1' } });
    expect(await ask()).toBe('a');
  });

  test('refuses calls of other processes and of agents it started', async () => {
    const { say, ask } = callers({ by: 'call', client: /^codex/ }, ['a']);
    say('a', ...start('c1', REPORT));
    expect(await ask({ pids: [1, 2] })).toBe('no session of this agent is followed here');
    expect(await ask({ client: 'gemini-cli-mcp-client' })).toBe(
      'gemini-cli-mcp-client is not the agent of this runner',
    );
    expect(await ask({ client: 'codex-mcp-client' })).toBe('a');
  });
});

describe('a session with a process to itself', () => {
  test('needs no further proof while nothing else can call', async () => {
    const { ask } = callers(undefined, ['a']);
    expect(await ask()).toBe('a');
  });

  test('refuses calls of its subagents', async () => {
    const { say, ask } = callers(undefined, ['a'], { tasks: [{ id: 't', runId: 'r', description: 'Look' }] });
    expect(await ask()).toBe('a');
    say('a', ...start('c1', REPORT, { subagentRunId: 'run-1' }));
    expect(await ask()).toMatch(SUBAGENT);
  });

  test('refuses calls of an agent that it started in a command', async () => {
    const { say, ask } = callers(undefined, ['a']);
    say('a', { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' });
    expect(await ask()).toBe(UNSEEN);
    say('a', ...start('c2', REPORT));
    expect(await ask()).toBe('a');
  });
});

test('refuses calls of another agent started behind AgentAPI', async () => {
  const provider = { value: 'gemini (AgentAPI)' };
  const { ask } = callers({ by: 'process', client: clientOf }, ['a'], {}, provider);
  const asked = ['gemini-cli-mcp-client', 'qwen-code', 'codex-mcp-client', 'claude-code'];
  const seen = async () => await Promise.all(asked.map(async (client) => (await ask({ client })) === 'a'));
  expect(await seen()).toEqual([true, true, false, false]);
  provider.value = 'codex (AgentAPI)';
  expect(await seen()).toEqual([true, true, true, false]);
  for (provider.value of ['custom (AgentAPI)', '']) expect(await seen()).toEqual([true, true, true, true]);
});

describe('a ticket', () => {
  const BY_TICKET: CallerRule = { by: 'ticket' };

  test('grants access to one session, whatever else runs in its process', async () => {
    const { own, ask } = callers(BY_TICKET, ['a', 'b']);
    const [a, b] = [own.ticketOf('a'), own.ticketOf('b')];
    expect([own.sessionOf(a), own.sessionOf(b), own.sessionOf('other'), own.ticketOf('a')]).toEqual([
      'a',
      'b',
      null,
      a,
    ]);
    expect(await ask({ ticketOf: 'a', pids: [] })).toBe('a');
    expect(await ask()).toContain('from another MCP server');
  });

  test('grants no access to a hidden subagent', async () => {
    const { say, ask } = callers(BY_TICKET, ['a']);
    say('a', ...start('c1', { prompt: 'Look.' }, { toolCallName: 'task' }));
    expect(await ask({ ticketOf: 'a' })).toBe(UNSEEN);
    say('a', { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'report_status (interlude MCP Server)' });
    expect(await ask({ ticketOf: 'a' })).toBe('a');
  });

  test('grants access to an agent that calls through a wrapper', async () => {
    const { say, ask } = callers(BY_TICKET, ['a']);
    say('a', { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'ToolCall' });
    expect(await ask({ ticketOf: 'a' })).toBe('a');
  });
});

describe('the process behind an address', () => {
  beforeEach(() => void vi.useRealTimers());

  async function listening(at: { port: number; host: string } | { path: string }) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(at, resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    return typeof address === 'string' ? address : `http://127.0.0.1:${address?.port}`;
  }

  test('is found by its port and by its socket', async () => {
    const address = await listening({ port: 0, host: '127.0.0.1' });
    const path = await listening({ path: join(await tempDir(), 'agent.sock') });
    for (const at of [address, path]) {
      expect(await findListener([process.ppid, process.pid], at)).toBe(1);
      expect(await findListener([process.ppid, 2_147_483_000], at)).toBeNull();
    }
    const elsewhere = address.replace('127.0.0.1', 'build-7.example');
    expect(await findListener([process.pid], elsewhere)).toBeNull();
    expect(await findListener([process.pid], `${path}-`)).toBeNull();
  });

  test.skipIf(!hasLsof)('is the same by lsof', async () => {
    const port = Number(new URL(await listening({ port: 0, host: '127.0.0.1' })).port);
    const path = await listening({ path: join(await tempDir(), 'agent.sock') });
    const pids = [process.ppid, process.pid];
    expect(await byLsof(pids, '', port)).toEqual(new Set([process.pid]));
    expect(await byLsof(pids, path, undefined)).toEqual(new Set([process.pid]));
  });
});
