import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Attachment } from '@/lib/protocol/attachments';
import type { AgentDetail, SessionDetail, TranscriptPage } from '@/lib/protocol/read-models';
import { hashOf, PNG } from '../support/attachments';
import { type CliRun, startCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';

/**
 * An attachment from the dashboard to an agent, with real processes in between, which are killed. The agent speaks ACP
 * and keeps what it was prompted with in a file, as others keep their sessions.
 */
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

let dashboard: LocalDashboard;
let asked: string[] = [];
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
  dashboard.cutsOff = (path) => {
    asked.push(path);
    return false;
  };
});
afterAll(() => dashboard.close());

async function stage(sessionId: string) {
  const folder = await tempDir();
  const [heard, gate, data] = ['heard', 'gate', 'data'].map((name) => join(folder, name)) as [string, string, string];
  await mkdir(data, { mode: 0o700 });
  const env = { INTERLUDE_DATA_DIR: data, INTERLUDE_URL: dashboard.url, INTERLUDE_TOKEN: dashboard.token };
  let run: CliRun | null = null;
  onTestFinished(async () => {
    run?.process.kill('SIGKILL');
    await run?.ended;
  });
  asked = [];
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
    /** What the runner has of it. */
    kept: () => readdir(join(data, 'attachments')).catch(() => []),
    fetches: () => asked.filter((path) => path.startsWith('/api/v1/attachments/')).length,
    isThere: () =>
      until(() =>
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

const until = (look: () => unknown) => expect.poll(look, { interval: 20 });
const PROMPT = JSON.stringify([
  { type: 'text', text: 'Look at it' },
  { type: 'image', mimeType: 'image/png', data: Buffer.from(PNG).toString('base64') },
]);

describe('what a message carries', () => {
  test('reaches the agent once, though the runner is killed before the agent could be given it, and is fetched once', async () => {
    const { open, start, kill, prompts, kept, fetches, isThere, send, delivery, takes } = await stage('early');
    start();
    await isThere();
    await send();
    await until(kept).toEqual([`${hashOf(PNG)}.png`]);
    await kill();
    expect(await prompts()).toEqual([]);
    start();
    await open();
    await until(prompts).toEqual([PROMPT]);
    await until(delivery).toEqual(['seen']);
    await until(takes).toEqual(['image', 'file']);
    expect(fetches()).toBe(1);
  });

  test('reaches it once, though the runner is killed as soon as the agent has it', async () => {
    const { open, start, kill, prompts, fetches, isThere, send, delivery } = await stage('late');
    await open();
    start();
    await isThere();
    await send();
    await until(prompts).toHaveLength(1);
    await kill();
    start();
    // Whether its turn had begun by what was on disk is chance, and seen is what a turn has begun with.
    await until(async () => /^(delivered|seen)$/.test(String(await delivery()))).toBe(true);
    await until(() => asked.filter((path) => path.includes('/ack')).length).toBeGreaterThan(0);
    expect([await prompts(), fetches()]).toEqual([[PROMPT], 1]);
  });

  test('is waited for while the dashboard cuts it off, and nothing of the message is lost', async () => {
    const { open, start, prompts, isThere, send } = await stage('cut');
    await open();
    start();
    await isThere();
    let cut = 0;
    dashboard.cutsOff = (path) => {
      if (!path.startsWith(`/api/v1/attachments/${hashOf(PNG)}`) || cut >= 2) return false;
      cut += 1;
      return true;
    };
    await send();
    await until(prompts).toEqual([PROMPT]);
    expect(cut).toBe(2);
  });

  test('reaches it by the next runner, though one was stopped in good order while it waited for the bytes', async () => {
    const { open, start, stop, prompts, isThere, send, delivery } = await stage('stopped');
    await open();
    start();
    await isThere();
    let cut = 0;
    dashboard.cutsOff = (path) => {
      if (!path.startsWith('/api/v1/attachments/')) return false;
      cut += 1;
      return true;
    };
    await send();
    await until(() => cut).toBeGreaterThan(0);
    await stop();
    dashboard.cutsOff = () => false;
    expect(await prompts()).toEqual([]);
    start();
    await until(prompts).toEqual([PROMPT]);
    await until(delivery).toEqual(['seen']);
  });
});
