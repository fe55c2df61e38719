import { join } from 'node:path';
import type { CommandAnswer } from '@interlude/protocol/commands';
import type { AgentSummary, SessionDetail, TranscriptPage } from '@interlude/protocol/read-models';
import { expect, onTestFinished } from 'vitest';
import { type AcpAgentOptions, PlayedAcpAgent } from './acp-agent';
import { startCli } from './cli';
import type { LocalDashboard } from './local-dashboard';
import { tempDir } from './temp-dir';

export const until = (look: () => unknown) => expect.poll(look, { interval: 20 });

/** `interlude runner acp` as a process that is connected, with an agent that the test plays. */
export async function acpRunner(dashboard: LocalDashboard, name: string, options: AcpAgentOptions = {}) {
  const [agentId, sessionId] = [`agent-${name}`, `session-${name}`];
  const agent = await PlayedAcpAgent.open(options);
  const env = {
    INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
    INTERLUDE_URL: dashboard.url,
    INTERLUDE_TOKEN: dashboard.token,
  };
  const flags = ['--agent', agentId, '--session', sessionId];
  const { process, ended } = startCli(['runner', 'acp', ...flags, '--', ...agent.command], env);
  onTestFinished(() => void process.kill('SIGKILL'));
  const summary = async () => (await dashboard.request<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent;
  await until(async () => (await summary().catch(() => null))?.connection).toBe('connected');
  const post = (path: string, body: object = {}) =>
    dashboard.request<CommandAnswer>(`/sessions/${sessionId}/${path}`, body);
  return {
    ...{ agent, ended, post, summary },
    session: async () => (await dashboard.request<SessionDetail>(`/sessions/${sessionId}`)).session,
    turns: async () => (await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`)).turns,
  };
}
