import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { killOnExit } from './kill-on-exit.mjs';
import { reservePort } from './reserve-port.mjs';

/**
 * The dashboard as started by `npm start`, with its own port and data directory. Needs a build; `npm test` makes one
 * first.
 */
export interface LiveServer {
  url: string;
  token: string;
  dataDir: string;
  /** URL of the database. */
  databaseUrl: string;
  readonly pid: number;
  /** Output since the last start. */
  readonly output: string;
  /** SIGKILL: no signal handler runs. */
  kill9(): Promise<void>;
  /** Closes the reading end of its output. */
  unheard(): void;
  /** SIGSTOP: clients wait. */
  freeze(): void;
  thaw(): void;
  /** Restarts on the same port with the same data. */
  restart(): Promise<void>;
  /** Sends a signal. @returns the exit code and the time until exit */
  signal(name: NodeJS.Signals): Promise<{ exitCode: number | null; afterMs: number }>;
  /** Stops it as Ctrl-C does and removes its data. */
  stop(): Promise<void>;
}

export interface LiveServerOptions {
  /** Not removed at the end if given. */
  dataDir?: string;
  port?: number;
  token?: string;
  env?: Record<string, string>;
  args?: string[];
}

const program = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const READY_WITHIN_MS = 180_000;

export async function startLiveServer(options: LiveServerOptions = {}): Promise<LiveServer> {
  const port = options.port ?? (await reservePort());
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'interlude-live-')));
  const token = options.token ?? randomBytes(32).toString('base64url');
  const env = { INTERLUDE_DATA_DIR: dataDir, INTERLUDE_TOKEN: token, ...options.env };
  const url = `http://127.0.0.1:${port}${options.env?.INTERLUDE_BASE_PATH ?? ''}`;
  let output = '';
  let running = await start();

  async function start(): Promise<ChildProcess> {
    const command = [program, '--port', String(port), ...(options.args ?? [])];
    const environment = { ...withoutInterlude(process.env), ...env };
    const child = killOnExit(
      spawn(process.execPath, command, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] }),
      options.dataDir === undefined ? dataDir : null,
    );
    output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk).slice(-20_000);
      if (process.env.LIVE_SERVER_OUTPUT) process.stderr.write(chunk);
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await isAnnounced(dataDir, child))) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the server exited: ${output}`);
      if (Date.now() > deadline) throw new Error(`the server did not start: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return child;
  }

  return {
    url,
    token,
    dataDir,
    databaseUrl: options.env?.INTERLUDE_DATABASE_URL ?? pathToFileURL(join(dataDir, 'interlude.db')).href,
    get pid() {
      return running.pid ?? 0;
    },
    get output() {
      return output;
    },
    kill9: () => end(running, 'SIGKILL'),
    unheard: () => {
      for (const stream of [running.stdout, running.stderr]) stream?.destroy();
    },
    freeze: () => void running.kill('SIGSTOP'),
    thaw: () => void running.kill('SIGCONT'),
    async signal(name) {
      const since = performance.now();
      await end(running, name);
      return { exitCode: running.exitCode, afterMs: performance.now() - since };
    },
    async restart() {
      await end(running, 'SIGTERM');
      running = await start();
    },
    async stop() {
      await end(running, 'SIGTERM');
      if (!options.dataDir) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** start.mjs writes its address once it responds. An entry with another pid is a leftover of a killed process. */
async function isAnnounced(dataDir: string, child: ChildProcess): Promise<boolean> {
  const text = await readFile(join(dataDir, 'server.json'), 'utf8').catch(() => '{}');
  return (JSON.parse(text) as { pid?: number }).pid === child.pid;
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  return gone;
}

function withoutInterlude(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^(INTERLUDE_|HOST$|PORT$|NODE_ENV$|VITEST)/.test(name));
  return Object.fromEntries(kept) as NodeJS.ProcessEnv;
}

const PROGRAM = fileURLToPath(new URL('../../node_modules/next/dist/bin/next', import.meta.url));

/** `next start` with the existing build and without the front door, as on other hosts. */
interface NextServer {
  url: string;
  token: string;
  dataDir: string;
  /** Stops it as a host does and removes its data. */
  stop(): Promise<void>;
}

export async function startNextServer(token: string): Promise<NextServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'interlude-next-'));
  const port = await reservePort();
  const env = { ...process.env, NODE_ENV: 'production', INTERLUDE_TOKEN: token, INTERLUDE_DATA_DIR: dataDir } as const;
  const child = spawn(process.execPath, [PROGRAM, 'start', '-p', String(port), '-H', '127.0.0.1'], {
    env,
    stdio: 'ignore',
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const url = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('next start did not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    token,
    dataDir,
    async stop() {
      child.kill('SIGTERM');
      await gone;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function answers(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`).then(
    () => true,
    () => false,
  );
}
