/**
 * Prism, a proxy that validates requests and responses against an OpenAPI document. The 90 MB package is installed on
 * demand into its own folder.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killOnExit } from './kill-on-exit.mjs';
import { ensureProgram } from './programs.mjs';
import { reservePort } from './reserve-port.mjs';

/** The latest version for Node 20. Later ones `require` ES modules, which needs Node 20.19. */
const VERSION = '5.14.2';
const READY_WITHIN_MS = 60_000;

/** @returns {{ program: string } | { missing: string }} the script's path, or why it is missing */
export function ensurePrism() {
  return ensureProgram({
    what: 'Prism',
    name: '@stoplight/prism-cli',
    version: VERSION,
    file: join('dist', 'index.js'),
    folder: 'interlude-prism',
  });
}

/**
 * Starts the proxy on loopback. It forwards everything and reports violations in the header `sl-violations`.
 *
 * @param {object} document
 * @param {string} upstream the address of the server
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 * @throws {Error} with Prism's output if it does not come up
 */
export async function startPrism(document, upstream) {
  const found = ensurePrism();
  if ('missing' in found) throw new Error(found.missing);
  const folder = await mkdtemp(join(tmpdir(), 'interlude-prism-'));
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(document));
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  const options = ['--port', String(port), '--errors=false', '--cors=false', '--verboseLevel=fatal'];
  const args = [found.program, 'proxy', file, upstream, ...options];
  const child = killOnExit(spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] }), folder);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output = (output + chunk).slice(-4_000);
    });
  }
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await isUp(url))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`Prism did not start: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.kill('SIGKILL')) await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @param {string} url */
async function isUp(url) {
  return fetch(`${url}/healthz`).then(
    (response) => response.ok,
    () => false,
  );
}
