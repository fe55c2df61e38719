import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fieldsOf } from '@interlude/protocol/fields';
import { AppServer, connectSocket } from '@interlude/runner/sources/codex/app-server';
import { onTestFinished } from 'vitest';
import { type CodexInput, type CodexReply, startCodexModel } from './acp-model';
import { type CliEnd, type CliRun, runShell, startCli } from './cli';
import { Operator } from './operator';
import { tempDir } from './temp-dir';

/** Path of the real Codex, if installed. */
export const CODEX = join(process.env.INTERLUDE_TEST_AGENTS_DIR ?? '', 'codex', 'node_modules', '.bin', 'codex');

/** The real Codex on the real runner, with an isolated project and home and a scripted model. */
interface CodexStage {
  agentId: string;
  sessionId: string;
  /** The project folder. */
  cwd: string;
  /** Interlude's data directory. */
  dataDir: string;
  operator: Operator;
  /** Starts a runner, or restarts one after a kill. Resolves when the runner prints its address. */
  runner(...args: string[]): Promise<CliRun>;
  end(): CliRun['ended'];
  /** Starts an app-server like the terminals' daemon. `begin`: starts a thread with this text, as a terminal does. */
  daemon(): Promise<{ socket: string; begin(text: string): Promise<string> }>;
  operatorOf(sessionId: string): Operator;
  /** Kills the runner's app-server. */
  killServer(): void;
  /** Runs a command line with this home, with Codex as `codex`. */
  shell(line: string): Promise<CliEnd>;
  /** Requests the dashboard's API. */
  ask(method: 'POST' | 'PUT', path: string, body: object): Promise<void>;
}

export async function codexStage(
  server: { url: string; token: string },
  script: (asked: CodexInput) => CodexReply,
  more: Record<string, string> = {},
): Promise<CodexStage> {
  const home = await tempDir();
  const codexHome = join(home, '.codex');
  const cwd = join(home, 'work');
  const dataDir = join(home, 'data');
  for (const folder of [codexHome, cwd, join(home, 'tmp')]) await mkdir(folder);
  const model = await startCodexModel(script);
  const provider = { name: 'scripted', base_url: `${model.url}/v1`, wire_api: 'responses', env_key: 'SCRIPTED_KEY' };
  const settings = Object.entries(provider).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const retries = ['request_max_retries = 0', 'stream_max_retries = 0'];
  const config = ['model = "scripted"', 'model_provider = "scripted"', '[model_providers.scripted]'];
  await writeFile(join(codexHome, 'config.toml'), `${[...config, ...settings, ...retries].join('\n')}\n`);
  const codexEnv = { HOME: home, CODEX_HOME: codexHome, TMPDIR: join(home, 'tmp'), SCRIPTED_KEY: 'k' };
  const env = {
    ...codexEnv,
    PATH: process.env.PATH ?? '',
    INTERLUDE_URL: server.url,
    INTERLUDE_TOKEN: server.token,
    INTERLUDE_DATA_DIR: dataDir,
    ...more,
  };
  const sessionId = randomUUID();
  const agentId = `codex-${sessionId.slice(0, 8)}`;
  let run: CliRun | null = null;
  onTestFinished(async () => {
    if (run === null || run.process.exitCode !== null || run.process.signalCode !== null) return;
    run.process.kill('SIGINT');
    run.process.kill('SIGINT');
    await run.ended;
  });
  return {
    agentId,
    sessionId,
    cwd,
    dataDir,
    operator: new Operator(server, sessionId),
    async runner(...args) {
      const started = startCli(['runner', 'codex', '--agent', agentId, ...args], env, cwd);
      run = started;
      await new Promise<void>((resolve, reject) => {
        started.process.stdout?.once('data', () => resolve());
        started.process.stderr?.on('data', (text) => String(text).includes('follows the Codex') && resolve());
        void started.ended.then((end) => reject(new Error(`the runner exited: ${JSON.stringify(end)}`)));
      });
      return started;
    },
    async end() {
      run?.process.kill('SIGINT');
      return await (run as CliRun).ended;
    },
    async daemon() {
      const socket = join(home, 'app-server.sock');
      const child = spawn(CODEX, ['app-server', '--listen', `unix://${socket}`], {
        env: { ...process.env, ...env },
        cwd,
        detached: true,
      });
      onTestFinished(() => killGroup(child));
      while (!existsSync(socket)) {
        if (child.exitCode !== null) throw new Error(`the app-server exited with code ${child.exitCode}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return { socket, begin: (text) => beginThread(socket, cwd, text) };
    },
    operatorOf: (id) => new Operator(server, id),
    shell: (line) => runShell(line, { ...codexEnv, PATH: `${dirname(CODEX)}${delimiter}${env.PATH}` }, cwd),
    killServer() {
      const processes = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' });
      const servers = processes.split('\n').flatMap((line) => {
        const [, pid, parent, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
        return Number(parent) === run?.process.pid && args.includes('app-server') ? [Number(pid)] : [];
      });
      if (servers.length !== 1) throw new Error(`expected one app-server, found ${servers.length}`);
      process.kill(-(servers[0] as number), 'SIGKILL');
    },
    async ask(method, path, body) {
      const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
      const response = await fetch(`${server.url}/api/v1/sessions/${sessionId}/${path}`, {
        ...{ method, headers, body: JSON.stringify(body) },
      });
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    },
  };
}

/** Starts a thread as a terminal does when its user types. */
async function beginThread(socket: string, cwd: string, text: string): Promise<string> {
  const link = connectSocket(socket, {
    onMessage: (message) => void server.settle(fieldsOf(message)),
    onTrouble: () => undefined,
    onStderr: () => undefined,
  });
  onTestFinished(() => link.kill());
  const server = new AppServer(link, () => undefined);
  const call = async (method: string, params: object) => {
    const answered = await server.call(method, { ...params });
    if ('error' in answered) throw new Error(`${method}: ${answered.error}`);
    return answered.result;
  };
  await call('initialize', {
    clientInfo: { name: 'terminal', title: 'Terminal', version: '1' },
    capabilities: EXPERIMENTAL,
  });
  server.notify('initialized');
  const policy = { approvalPolicy: 'never', sandbox: 'danger-full-access' };
  const { thread } = await call('thread/start', { cwd, ...policy });
  const threadId = String(fieldsOf(thread).id);
  await call('turn/start', { threadId, input: [{ type: 'text', text, text_elements: [] }] });
  return threadId;
}

const EXPERIMENTAL = { experimentalApi: true };

/** Kills the group, because the binary is a child of npm's launch script. */
async function killGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGKILL');
  await gone;
}
