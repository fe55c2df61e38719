import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { mcpCommands } from '@interlude/runner/host/own-program.mjs';
import { onTestFinished } from 'vitest';
import { type ModelContext, type ModelStep, startAcpModel } from './acp-model';
import { opencodeConfiguration } from './acp-real-agents';
import { type CliRun, runShell, startCli } from './cli';
import type { LiveServer } from './live-server';
import { Operator } from './operator';
import { reservePort } from './reserve-port.mjs';
import { tempDir } from './temp-dir';
import { type BreakableProxy, breakableProxy } from './test-proxies';

const PROGRAM = `opencode-${process.platform}-${process.arch}-baseline/bin/opencode`;
const AGENTS = process.env.INTERLUDE_TEST_AGENTS_DIR;
const PROGRAM_PATH = join(AGENTS ?? '', 'opencode', 'node_modules', PROGRAM);

/** @returns why the real OpenCode can't run here, or null */
export function missingOpencode(): string | null {
  if (AGENTS === undefined) return 'INTERLUDE_TEST_AGENTS_DIR is not set';
  return existsSync(PROGRAM_PATH) ? null : `${PROGRAM} is not installed`;
}

/** The real OpenCode with an isolated project and home and a scripted model, and the real runner. */
interface OpencodeStage {
  sessionId: string;
  operator: Operator;
  /** Starts a runner, or restarts one after a kill. Resolves when it follows OpenCode. */
  runner(...args: string[]): Promise<CliRun>;
  /** SIGKILL for the runner. */
  killRunner(): Promise<void>;
  /** Kills the server's process. */
  killServer(): Promise<void>;
  startServer(): Promise<void>;
  /** Proxy between runner and server. */
  line: BreakableProxy;
  /** Creates another session. */
  another(): Promise<Operator>;
  /** Acts as a terminal attached to the server. */
  terminal: {
    say(text: string): Promise<void>;
    /** Resolves once all sessions are idle. */
    idle(): Promise<void>;
  };
}

export async function opencodeStage(
  server: Pick<LiveServer, 'url' | 'token'>,
  script: (context: ModelContext) => ModelStep,
  more: Record<string, string> = {},
  { hasTools = false } = {},
): Promise<OpencodeStage> {
  const home = await tempDir();
  const [work, temp, settings] = ['work', 'tmp', '.config/opencode'].map((name) => join(home, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [work, temp, settings]) await mkdir(folder, { recursive: true });
  const url = await startAcpModel(script);
  await writeFile(join(settings, 'opencode.json'), JSON.stringify(opencodeConfiguration(url)));
  const port = await reservePort();
  const address = `http://127.0.0.1:${port}`;
  const opencodeEnv: NodeJS.ProcessEnv = {
    NODE_ENV: 'test',
    ...{
      PATH: `${dirname(PROGRAM_PATH)}${delimiter}${process.env.PATH}`,
      HOME: home,
      TMPDIR: temp,
      SHELL: '/bin/bash',
    },
    ...{ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS: 'true',
  };
  const dataDir = join(home, 'data');
  if (hasTools) {
    const { exitCode, stdout } = await runShell(
      mcpCommands(dataDir).OpenCode,
      opencodeEnv as Record<string, string>,
      work,
    );
    if (exitCode !== 0) throw new Error(stdout);
  }
  let running: ChildProcess | null = null;
  onTestFinished(() => end(running));
  await startServer();
  const line = await breakableProxy(address);
  onTestFinished(() => line.close());
  const session = (await ask('/session', {})) as { id: string };
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: home, INTERLUDE_DATA_DIR: dataDir },
    ...{ INTERLUDE_URL: server.url, INTERLUDE_TOKEN: server.token },
    ...more,
  };
  let run: CliRun | null = null;
  onTestFinished(async () => {
    run?.process.kill('SIGINT');
    await run?.ended;
  });

  return {
    sessionId: session.id,
    operator: new Operator(server, session.id),
    line,
    async runner(...args) {
      const about = ['--url', line.origin, '--agent', `oc-${session.id}`];
      const started = startCli(['runner', 'opencode', ...about, ...args], env);
      run = started;
      await new Promise<void>((resolve, reject) => {
        // The runner prints the address of a named session.
        started.process.stdout?.once('data', () => resolve());
        started.process.stderr?.on('data', (text) => String(text).includes('follows the sessions') && resolve());
        void started.ended.then((ended) => reject(new Error(`the runner exited: ${JSON.stringify(ended)}`)));
      });
      return started;
    },
    async killRunner() {
      run?.process.kill('SIGKILL');
      await run?.ended;
    },
    killServer: () => end(running),
    startServer,
    another: async () => new Operator(server, ((await ask('/session', {})) as { id: string }).id),
    terminal: {
      async say(text) {
        await ask(`/session/${session.id}/prompt_async`, { parts: [{ type: 'text', text }] });
      },
      async idle() {
        for (;;) {
          const busy = (await (
            await fetch(`${address}/session/status?directory=${encodeURIComponent(work)}`)
          ).json()) as object;
          const messages = (await (await fetch(`${address}/session/${session.id}/message`)).json()) as {
            info: { role: string };
          }[];
          if (Object.keys(busy).length === 0 && messages.at(-1)?.info.role === 'assistant') return;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
    },
  };

  async function startServer(): Promise<void> {
    const args = ['serve', '--port', `${port}`, '--print-logs'];
    const started = spawn(PROGRAM_PATH, args, { cwd: work, env: opencodeEnv, stdio: ['ignore', 'pipe', 'pipe'] });
    running = started;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      const hear = (text: Buffer) => {
        said += text;
        if (said.includes('listening on')) resolve();
      };
      started.stdout.on('data', hear);
      started.stderr.on('data', hear);
      started.once('exit', (code) => reject(new Error(`OpenCode exited with code ${code}: ${said.slice(-500)}`)));
    });
  }

  async function ask(path: string, body: object): Promise<unknown> {
    const query = `?directory=${encodeURIComponent(work)}`;
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(address + path + query, { method: 'POST', headers, body: JSON.stringify(body) });
    return response.status === 204 ? null : await response.json();
  }
}

async function end(child: ChildProcess | null): Promise<void> {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
