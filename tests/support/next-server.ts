import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownPort } from './own-port.mjs';

const PROGRAM = fileURLToPath(new URL('../../node_modules/next/dist/bin/next', import.meta.url));
const READY_WITHIN_MS = 60_000;

/** `next start` of the build that stands, as on a host of its own kind: no front door stands before Next. */
export interface NextServer {
  url: string;
  token: string;
  dataDir: string;
  /** Ends it as a host does and removes its data. */
  stop(): Promise<void>;
}

export async function startNextServer(token: string): Promise<NextServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'interlude-next-'));
  const port = await ownPort();
  const env = { ...process.env, NODE_ENV: 'production', INTERLUDE_TOKEN: token, INTERLUDE_DATA_DIR: dataDir } as const;
  const child = spawn(process.execPath, [PROGRAM, 'start', '-p', String(port), '-H', '127.0.0.1'], {
    env,
    stdio: 'ignore',
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const url = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('next start did not come up');
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
