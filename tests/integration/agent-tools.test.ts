import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { AgentSummary, ObligationList, TranscriptPage } from '@/lib/protocol/read-models';
import { controlPath, readControlFile } from '@/lib/runner/control-port/control-file';
import { RunnerHost } from '@/lib/runner/host/runner-host';
import type { Source, SourceSurroundings } from '@/lib/runner/host/source';
import { callTool } from '@/lib/runner/mcp/agent-tools';
import { newMcpServer } from '@/lib/runner/mcp/mcp-server';
import { Outbox } from '@/lib/runner/outbox/outbox';
import { runCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { messages } from '../support/operator';
import { tempDir } from '../support/temp-dir';

/** The tools, by every way that leads to them, on a real runner and dashboard. The agent is played by this process. */

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));
let agents = 0;

/** A runner whose agent is this process: what it is told waits for a reply. */
async function listener() {
  agents += 1;
  const [agentId, sessionId, folder] = [`listener-${agents}`, `listened-${agents}`, await tempDir()];
  let around: SourceSurroundings | null = null;
  const emit = async (...events: AgUiEvent[]) =>
    void (await around?.emit(
      sessionId,
      events.map((event) => ({ occurredAt: Date.now(), event })),
    ));
  const source: Source = {
    sessions: [{ sessionId, process: { state: 'running', pid: process.pid, exitCode: null }, attachments: [] }],
    start: async () => {},
    say: async () => ({ state: 'delivered' }),
    close: async () => {},
  };
  const host = await RunnerHost.open({
    about: { kind: 'listener' },
    meanwhile: 'the agent goes on',
    openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
    ...{ endpoint: dashboard.endpoint, dataDir: folder, level: undefined },
    controlFile: () => controlPath(folder, 'hooks'),
  });
  onTestFinished(async () => void (await host.close(0, 2_000)));
  await host.start((surroundings) => {
    around = surroundings;
    return source;
  });
  await host.outbox.idle();
  const surroundings = around as unknown as SourceSurroundings;
  return {
    ...{ agentId, sessionId, folder, host, emit },
    tools: surroundings.tools(sessionId),
    /** @returns once the runner knows that it is owed a reply */
    async ask(text: string): Promise<string> {
      const body = { text, clientId: text };
      const sent = await dashboard.request<{ messageId: string }>(`/sessions/${sessionId}/messages`, body);
      const { messageId } = sent;
      await settled(() => surroundings.owed().map((one) => one.messageId)).toContain(messageId);
      return messageId;
    },
    owed: async () =>
      (await dashboard.request<ObligationList>(`/agents/${agentId}/reply-obligations`)).obligations.map(
        ({ messageId }) => messageId,
      ),
    texts: async () =>
      messages((await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`)).turns, 'assistant'),
    report: async () =>
      (await dashboard.request<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent.status?.report as
        | Record<string, unknown>
        | undefined,
  };
}

const settled = (look: () => unknown) => expect.poll(look, { interval: 20 });

async function connected(transport: StdioClientTransport | InMemoryTransport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

/** `interlude mcp`, as an agent starts it. */
function overStdio(folder: string): Promise<Client> {
  const env = { PATH: process.env.PATH ?? '', INTERLUDE_DATA_DIR: folder };
  return connected(new StdioClientTransport({ command: process.execPath, args: [program, 'mcp'], env }));
}

async function call(client: Client, name: string, input: Record<string, unknown> = {}) {
  const { content, isError } = await client.callTool({ name, arguments: input });
  return { text: (content as { text: string }[])[0]?.text ?? '', isError: isError === true };
}

describe('an agent with Interlude’s tools', () => {
  test('that starts `interlude mcp` reports, sees what it owes and replies, in its own session', async () => {
    const { folder, emit, ask, owed, texts, report } = await listener();
    const client = await overStdio(folder);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['report_status', 'list_obligations', 'reply']);
    expect(tools[0]?.inputSchema).toMatchObject({
      additionalProperties: false,
      required: ['state', 'summary'],
      properties: { state: { enum: ['working', 'idle', 'complete', 'failure'] }, summary: { maxLength: 160 } },
    });
    const messageId = await ask('How far are you?');
    await emit({ type: 'RUN_STARTED', threadId: 's', runId: 'r1' });
    expect((await call(client, 'list_obligations')).text).toContain(`"messageId": "${messageId}"`);
    const unknown = await call(client, 'reply', { messageId: 'nobody', text: 'Half way.' });
    expect(unknown).toMatchObject({ isError: true });
    expect(unknown.text).toContain(messageId);
    expect(await call(client, 'reply', { messageId, text: 'Half way.' })).toMatchObject({ isError: false });
    expect(await call(client, 'reply', { messageId, text: 'Half way.' })).toMatchObject({ isError: true });
    expect(await call(client, 'report_status', { state: 'working', summary: 'Half way.' })).toMatchObject({
      isError: false,
    });
    await settled(report).toMatchObject({ state: 'working', summary: 'Half way.', turnId: 'r1' });
    await settled(texts).toMatchObject([{ text: 'Half way.' }]);
    expect(await owed()).toEqual([messageId]);
    await emit({ type: 'RUN_FINISHED', threadId: 's', runId: 'r1', outcome: { type: 'success' } });
    await settled(owed).toEqual([]);
    expect(await texts()).toHaveLength(1);
  });

  test('has answered when its turn ends, also when a task woke it and the message came meanwhile', async () => {
    const { emit, ask, owed, tools } = await listener();
    await emit({
      ...{ type: 'RUN_STARTED', threadId: 's', runId: 'r1' },
      metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] }, userMessageIds: [] } },
    });
    const messageId = await ask('And now?');
    expect(await tools.reply(messageId, 'The poll has failed.')).toBeNull();
    await emit({ type: 'RUN_FINISHED', threadId: 's', runId: 'r1', outcome: { type: 'success' } });
    await settled(owed).toEqual([]);
  });

  test('gets a report through without a turn, and a bad one back with what is wrong', async () => {
    const { folder, report } = await listener();
    const client = await overStdio(folder);
    const long = await call(client, 'report_status', { state: 'idle', summary: 'x'.repeat(161) });
    expect(long.isError).toBe(true);
    expect(long.text).toContain('160');
    expect(await call(client, 'report_status', { state: 'idle', summary: 'x', mood: 'good' })).toMatchObject({
      isError: true,
    });
    await call(client, 'report_status', { state: 'complete', summary: 'Done.', link: 'https://example.org/1' });
    await settled(report).toMatchObject({ state: 'complete', link: 'https://example.org/1', turnId: null });
  });

  test('is told so where no runner runs, and where the runner does not know it', async () => {
    const lonely = await call(await overStdio(await tempDir()), 'list_obligations');
    expect(lonely.isError).toBe(true);
    expect(lonely.text).toContain('not running');
    const { folder } = await listener();
    const control = await readControlFile(controlPath(folder, 'hooks'));
    const port = async (path: string, secret = control?.secret) => {
      const headers = { authorization: `Bearer ${secret}` };
      const response = await fetch(`${control?.url}${path}`, { method: 'POST', headers, body: '{}' });
      return [response.status, await response.json()];
    };
    const nobody = { error: 'this agent has no session that is followed here' };
    expect(await port('/tools/list_obligations?pid=1,2147483000')).toEqual([404, nobody]);
    expect(await port('/tools/list_obligations')).toEqual([404, nobody]);
    expect(await port(`/tools/nothing?pid=${process.pid}`)).toEqual([404, { error: 'there is no tool nothing' }]);
    expect(await port(`/tools/list_obligations?pid=2147483000,${process.pid}`)).toEqual([
      200,
      { text: 'No message waits for a reply from you.', isError: false },
    ]);
    expect(await port(`/tools/list_obligations?pid=${process.pid}`, 'wrong')).toMatchObject([401, {}]);
  });

  test('in the runner’s own process has the same tools', async () => {
    const { tools, ask } = await listener();
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const server = await newMcpServer((name, input) => callTool(name, input, tools));
    await server.connect(ours);
    const client = await connected(theirs);
    const messageId = await ask('Are you there?');
    expect((await call(client, 'list_obligations')).text).toContain(messageId);
    expect(await call(client, 'reply', { messageId, text: 'Yes.' })).toMatchObject({ isError: false });
    expect((await call(client, 'list_obligations')).text).toContain('No message waits');
  });
});

test('`interlude mcp` ends when its input does, and says nothing but the protocol on stdout', async () => {
  const { exitCode, stdout } = await runCli(['mcp'], { INTERLUDE_DATA_DIR: await tempDir() });
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
  expect(await runCli(['mcp', 'more'])).toMatchObject({ exitCode: 2 });
});
