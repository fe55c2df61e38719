import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { AgentSummary, ObligationList, TranscriptPage } from '@interlude/protocol/read-models';
import { controlPath } from '@interlude/runner/host/control-file';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import type { Source, SourceContext } from '@interlude/runner/host/source';
import type { CallerRule } from '@interlude/runner/host/tool-callers';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { expect, onTestFinished } from 'vitest';
import type { LocalDashboard } from './local-dashboard';
import { messages } from './operator';
import { tempDir } from './temp-dir';

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));
let agents = 0;

export const pollValue = (look: () => unknown) => expect.poll(look, { interval: 20 });

/**
 * A runner whose agent is this process. By default the runner counts it as its child; `callers` overrides that. A
 * message sent to it expects a reply.
 */
export async function toolCallingAgent(dashboard: LocalDashboard, callers?: CallerRule) {
  agents += 1;
  const [agentId, sessionId, folder] = [`agent-${agents}`, `session-${agents}`, await tempDir()];
  const pid = callers === undefined ? process.pid : null;
  let around: SourceContext | null = null;
  const emit = async (...events: AgUiEvent[]) =>
    void (await around?.emit(
      sessionId,
      events.map((event) => ({ occurredAt: Date.now(), event })),
    ));
  const source: Source = {
    sessions: [{ sessionId, process: { state: 'running', pid, exitCode: null }, attachments: [] }],
    start: async () => {},
    deliver: async () => ({ state: 'delivered' }),
    close: async () => {},
  };
  const host = await RunnerHost.open({
    about: { kind: 'listener' },
    meanwhile: 'the agent continues',
    openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
    ...{ endpoint: dashboard.endpoint, dataDir: folder, level: undefined },
    controlFile: () => controlPath(folder, 'hooks'),
    callers,
  });
  onTestFinished(async () => void (await host.close(0, 2_000)));
  await host.start((surroundings) => {
    around = surroundings;
    return source;
  });
  await host.outbox.idle();
  const surroundings = around as unknown as SourceContext;
  return {
    ...{ agentId, sessionId, folder, host, emit },
    callTool: surroundings.callTool(sessionId),
    toolServer: () => surroundings.toolServer(sessionId),
    /** Resolves once the runner knows about the pending reply. */
    async ask(text: string): Promise<string> {
      const body = { text, clientId: text };
      const sent = await dashboard.request<{ messageId: string }>(`/sessions/${sessionId}/messages`, body);
      const { messageId } = sent;
      await pollValue(() => surroundings.obligations().map((one) => one.messageId)).toContain(messageId);
      return messageId;
    },
    obligations: async () =>
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

/** Connects an MCP client to a transport. */
export async function connectTransport(transport: StdioClientTransport | InMemoryTransport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

/** Starts `interlude mcp` and connects a client. */
export function connectStdio(folder: string): Promise<Client> {
  const env = { PATH: process.env.PATH ?? '', INTERLUDE_DATA_DIR: folder };
  return connectTransport(new StdioClientTransport({ command: process.execPath, args: [program, 'mcp'], env }));
}

/** Calls a tool. */
export async function call(client: Client, name: string, input: Record<string, unknown> = {}) {
  const { content, isError } = await client.callTool({ name, arguments: input });
  return { text: (content as { text: string }[])[0]?.text ?? '', isError: isError === true };
}
