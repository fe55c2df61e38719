import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CommandAnswer } from '@/lib/protocol/commands';
import type { AgentSummary, SessionDetail, TranscriptPage } from '@/lib/protocol/read-models';
import { PlayedAcpAgent } from '../support/acp-agent';
import { startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

const settled = (look: () => unknown) => expect.poll(look, { interval: 20 });
let runs = 0;

/** `interlude runner acp` as a process, with an agent that the test plays. */
async function runner() {
  runs += 1;
  const [agentId, sessionId] = [`ending-${runs}`, `ends-${runs}`];
  const agent = await PlayedAcpAgent.open();
  const env = {
    INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
    INTERLUDE_URL: dashboard.url,
    INTERLUDE_TOKEN: dashboard.token,
  };
  const flags = ['--agent', agentId, '--session', sessionId];
  const { process, ended } = startCli(['runner', 'acp', ...flags, '--', ...agent.command], env);
  onTestFinished(() => void process.kill('SIGKILL'));
  const summary = async () => (await dashboard.request<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent;
  await settled(async () => (await summary().catch(() => null))?.connection).toBe('connected');
  const post = (path: string, body: object = {}) =>
    dashboard.request<CommandAnswer>(`/sessions/${sessionId}/${path}`, body);
  return {
    ...{ agent, ended, post, summary },
    session: async () => (await dashboard.request<SessionDetail>(`/sessions/${sessionId}`)).session,
    turns: async () => (await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`)).turns,
  };
}

describe('a session that is ended from the dashboard', () => {
  test('ends with its agent and its runner, which says so in a line and is content', async () => {
    const { agent, ended, post, session, turns, summary } = await runner();
    await settled(() => agent.of('session/new').length).toBe(1);
    expect((await summary()).status?.takes).toContain('session.end');
    await post('end');
    const end = await ended;
    expect([end.exitCode, end.stderr]).toEqual([0, 'interlude: ended from the dashboard\n']);
    expect(await session()).toMatchObject({ state: 'exited', stateReason: 'ended from the dashboard' });
    const said = (await turns()).flatMap(({ items }) => items.map((item) => ('text' in item ? item.text : item.kind)));
    expect(said).toEqual(['The runner ends the session.', expect.stringContaining('ended from the dashboard')]);
    await expect(post('end')).rejects.toThrow('session_ended');
  });

  test('has 5 seconds to finish what it is at, and is then broken off', async () => {
    const { agent, ended, post, session, turns } = await runner();
    await post('messages', { text: 'Build it', clientId: 'm' });
    await agent.prompted(1);
    agent.say('Building.');
    await settled(async () => (await turns()).at(-1)?.state).toBe('open');
    const asked = performance.now();
    await post('end');
    expect(await ended).toMatchObject({ exitCode: 0 });
    expect(performance.now() - asked).toBeGreaterThan(4_500);
    expect((await session()).stateReason).toBe('ended from the dashboard');
    expect((await turns()).find(({ kind }) => kind === 'user')).toMatchObject({ state: 'interrupted' });
  });
});
