import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandResponse } from '@interlude/protocol/commands';
import type { Attachment } from '@interlude/protocol/field-schemas';
import type { AgentDetail, AgentSummary, SessionDetail, TranscriptPage } from '@interlude/protocol/read-models';
import { expect, onTestFinished } from 'vitest';
import { type AcpAgentOptions, ScriptedAcpAgent } from './acp-agent';
import { PNG } from './attachments';
import { type CliRun, startCli } from './cli';
import type { LocalDashboard } from './local-dashboard';
import { tempDir } from './temp-dir';

/** An ACP agent that appends prompts to a file. It opens no session until the gate file exists. */
const AGENT = `
  const { appendFileSync, existsSync, readFileSync } = require('node:fs');
  const [file, gate] = process.argv.slice(1);
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const update = (sessionId, update) => say({ method: 'session/update', params: { sessionId, update } });
  const past = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\\n').map((line) => JSON.parse(line)) : []);
  const opened = () => new Promise((resolve) => {
    const look = setInterval(() => existsSync(gate) && (clearInterval(look), resolve()), 10);
  });
  const does = {
    initialize: () => ({
      protocolVersion: 1,
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true } },
    }),
    'session/new': async () => (await opened(), { sessionId: 'native' }),
    'session/load': async ({ sessionId }) => {
      await opened();
      for (const blocks of past()) {
        for (const content of blocks) update(sessionId, { sessionUpdate: 'user_message_chunk', content });
      }
      return {};
    },
    'session/prompt': ({ sessionId, prompt }) => {
      appendFileSync(file, JSON.stringify(prompt) + '\\n');
      update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'I see it.' } });
      return new Promise(() => {});
    },
  };
  let rest = '';
  process.stdin.on('data', async (chunk) => {
    const lines = (rest + chunk).split('\\n');
    rest = lines.pop();
    for (const line of lines) {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined || method === undefined) continue;
      say({ id, result: (await does[method]?.(params)) ?? {} });
    }
  });
  process.stdin.on('end', () => process.exit());
`;

export const poll = (look: () => unknown) => expect.poll(look, { interval: 20 });

/** The expected prompt, as a line of the agent's file. */
export const PROMPT = JSON.stringify([
  { type: 'text', text: 'Look at it' },
  { type: 'image', mimeType: 'image/png', data: Buffer.from(PNG).toString('base64') },
]);

/** A real runner process whose agent receives an attachment. */
export async function attachmentStage(dashboard: LocalDashboard, sessionId: string) {
  const folder = await tempDir();
  const [heard, gate, data] = ['heard', 'gate', 'data'].map((name) => join(folder, name)) as [string, string, string];
  await mkdir(data, { mode: 0o700 });
  const env = { INTERLUDE_DATA_DIR: data, INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
  let run: CliRun | null = null;
  onTestFinished(async () => {
    run?.process.kill('SIGKILL');
    await run?.ended;
  });
  const asked: string[] = [];
  dashboard.cutsOff = (path) => {
    asked.push(path);
    return false;
  };
  return {
    open: () => writeFile(gate, ''),
    start() {
      const given = ['--session', sessionId, '--agent', `agent-of-${sessionId}`];
      run = startCli(['runner', 'acp', ...given, '--', process.execPath, '-e', AGENT, heard, gate], env, folder);
    },
    async kill() {
      run?.process.kill('SIGKILL');
      await run?.ended;
    },
    async stop() {
      run?.process.kill('SIGINT');
      await run?.ended;
    },
    prompts: async () => (await readFile(heard, 'utf8').catch(() => '')).split('\n').filter(Boolean),
    /** Attachment files kept by the runner. */
    kept: () => readdir(join(data, 'attachments')).catch(() => []),
    asked,
    fetches: () => asked.filter((path) => path.startsWith('/api/v1/attachments/')).length,
    isThere: () =>
      poll(() =>
        dashboard.request<SessionDetail>(`/sessions/${sessionId}`).then(
          () => true,
          () => false,
        ),
      ).toBe(true),
    async send() {
      const uploaded = await fetch(`${dashboard.url}/api/v1/sessions/${sessionId}/attachments?name=dot.png`, {
        method: 'POST',
        headers: { authorization: `Bearer ${dashboard.token}`, 'content-type': 'image/png' },
        body: PNG,
      });
      const { hash, name } = (await uploaded.json()) as Attachment;
      const body = { text: 'Look at it', clientId: 'c1', attachments: [{ hash, name }] };
      await dashboard.request(`/sessions/${sessionId}/messages`, body);
    },
    delivery: async () => {
      const { turns } = await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`);
      const items = turns.flatMap((turn) => turn.items);
      return items.flatMap((item) => (item.kind === 'message' && item.role === 'user' ? [item.delivery] : []));
    },
    takes: async () =>
      (await dashboard.request<AgentDetail>(`/agents/agent-of-${sessionId}`)).agent.status?.attachments,
  };
}

/** Starts `interlude runner acp` as a process with a scripted agent and waits until it is connected. */
export async function acpRunner(dashboard: LocalDashboard, name: string, options: AcpAgentOptions = {}) {
  const [agentId, sessionId] = [`agent-${name}`, `session-${name}`];
  const agent = await ScriptedAcpAgent.open(options);
  const env = {
    INTERLUDE_DATA_DIR: join(await tempDir(), 'data'),
    INTERLUDE_URL: dashboard.url,
    INTERLUDE_TOKEN: dashboard.token,
  };
  const flags = ['--agent', agentId, '--session', sessionId];
  const { process, ended } = startCli(['runner', 'acp', ...flags, '--', ...agent.command], env);
  onTestFinished(() => void process.kill('SIGKILL'));
  const summary = async () => (await dashboard.request<{ agent: AgentSummary }>(`/agents/${agentId}`)).agent;
  await poll(async () => (await summary().catch(() => null))?.connection).toBe('connected');
  const post = (path: string, body: object = {}) =>
    dashboard.request<CommandResponse>(`/sessions/${sessionId}/${path}`, body);
  const session = async () => (await dashboard.request<SessionDetail>(`/sessions/${sessionId}`)).session;
  return {
    ...{ agent, ended, post, summary, session },
    /** Resolves when the dashboard has the session: the agent opens it before the runner sends its records. */
    opened: () => poll(() => session().then(({ state }) => state, String)).toBe('idle'),
    turns: async () => (await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`)).turns,
  };
}
