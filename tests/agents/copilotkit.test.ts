import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { agentsFolder, installedAgents } from '../support/real-agents.mjs';
import { reservePort } from '../support/reserve-port.mjs';
import { type StrictClient, strictClient } from '../support/strict-clients';
import { answer, requestOpened, requestResolved, turnOf, WireRunner } from '../support/wire-runner';

/** Runs CopilotKit's runtime with the code of `docs/agui.md`. */
const modules = join(agentsFolder(), 'copilotkit', 'node_modules');

describe.skipIf(!installedAgents().includes('copilotkit'))('CopilotKit’s runtime with the runner of the docs', () => {
  const id = 'copilot';
  const folder = mkdtempSync(join(tmpdir(), 'interlude-copilotkit-'));
  let interlude: LiveServer;
  let runner: WireRunner;
  let runtime: ChildProcess;
  let url = '';
  let seq = 0;

  beforeAll(async () => {
    interlude = await startLiveServer();
    await send({ type: 'CUSTOM', name: 'session:started', value: {} });
    runner = await WireRunner.connect(interlude, id);
    const page = readFileSync(new URL('../../docs/agui.md', import.meta.url), 'utf8');
    const program = /```js\n(\/\/ server\.mjs.*?)```/s.exec(page)?.[1] ?? '';
    writeFileSync(join(folder, 'server.mjs'), program);
    symlinkSync(modules, join(folder, 'node_modules'));
    const port = await reservePort();
    runtime = spawn(process.execPath, ['server.mjs'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        PATH: process.env.PATH,
        COPILOTKIT_TELEMETRY_DISABLED: 'true',
        INTERLUDE_URL: interlude.url,
        INTERLUDE_TOKEN: interlude.token,
        AGENT_ID: id,
        SESSION_ID: id,
        PORT: String(port),
      } as unknown as NodeJS.ProcessEnv,
    });
    url = `http://127.0.0.1:${port}/api/copilotkit/agent/default`;
    const info = () => fetch(`http://127.0.0.1:${port}/api/copilotkit/info`).then(({ status }) => status);
    await vi.waitUntil(async () => (await info().catch(() => 0)) === 200, { interval: 200 });
  });
  afterAll(async () => {
    runtime?.kill();
    runner?.leave();
    await interlude?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const target = () => ({
    origin: interlude.url,
    token: interlude.token,
    fetch,
    dump: async () => ({}),
    close: async () => {},
  });
  const send = (...events: AgUiEvent[]) =>
    ingest(
      target(),
      events.map((event) => record(++seq, { agentId: id, sessionId: id, event })),
      1,
      id,
    );
  const client = (path: string, threadId = 'made-up'): StrictClient =>
    strictClient('0.0.59', { url: `${url}${path}`, threadId });
  const ask = (agent: StrictClient, content: string) =>
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
  const shown = ({ messages }: StrictClient) => messages.map(({ role, content }) => [role, content]);

  test('runs, opens a request and continues with the answer in a new thread', async () => {
    const chat = client('/run');
    ask(chat, 'Build it');
    const running = chat.runAgent();
    const message = await runner.next('message');
    await runner.acknowledge(message, 'delivered');
    const { messageId } = message.body;
    const asks = requestOpened({ request_id: 'q1', kind: 'permission', title: 'Run make?', input: {} });
    await send(turnOf('RUN_STARTED', 'r1', [messageId]), ...answer('m1', 'May I?'), asks);
    await running;
    expect(chat.pendingInterrupts).toEqual([expect.objectContaining({ message: 'Run make?' })]);
    const resume = [{ interruptId: chat.pendingInterrupts[0]?.id, status: 'resolved', payload: { approved: true } }];
    const resuming = chat.runAgent({ resume });
    const decision = await runner.next('permission.decision');
    expect(decision.body.behavior).toBe('allow');
    await runner.acknowledge(decision, 'done');
    await send(requestResolved('q1', 'allowed'), ...answer('m2', 'Built.'), turnOf('RUN_FINISHED', 'r1', [messageId]));
    await resuming;
    expect(shown(chat)).toEqual([
      ['user', 'Build it'],
      ['assistant', 'May I?'],
      ['assistant', 'Built.'],
    ]);
  });

  test('a returning browser receives the whole thread, including between-run turns', async () => {
    const between = { turn: 'between-run' as const, trigger: { kind: 'timer' as const, taskIds: [] } };
    await send({ type: 'RUN_STARTED', threadId: 's', runId: 'r2', metadata: { interlude: between } });
    await send(...answer('m3', 'Still green.'), turnOf('RUN_FINISHED', 'r2', []));
    const chat = client('/connect');
    await chat.runAgent();
    expect(shown(chat)).toEqual([
      ['user', 'Build it'],
      ['assistant', 'May I?'],
      ['assistant', 'Built.'],
      ['assistant', 'Still green.'],
    ]);
  });

  test('its stop button interrupts the turn', async () => {
    await send(turnOf('RUN_STARTED', 'r3', []));
    const stopped = await fetch(`${url}/stop/made-up`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    expect(stopped.status).toBe(200);
    expect((await runner.next('interrupt')).body).toEqual({ turnId: 'r3' });
    await send(turnOf('RUN_FINISHED', 'r3', []));
  });
});
