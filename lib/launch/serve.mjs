import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { errorCode } from '../runner/system-error.mjs';
import { frontDoor } from './front-door.mjs';
import { listenError } from './port.mjs';
import { root } from './root.mjs';
import { LaunchError } from './say.mjs';
import { loadTypescript } from './typescript.mjs';

const READY_WITHIN_MS = 60_000;

/**
 * Runs the server in this very process, so that whatever ends this process ends the server: there is no child that
 * could outlive a kill -9 and keep the port.
 *
 * @param {string} host
 * @param {{ port: number, release(): Promise<void> }} held the port, as `holdPort` gives it
 * @returns {Promise<string>} the URL, once it answers
 */
export async function serve(host, { port, release }) {
  process.env.NEXT_TELEMETRY_DISABLED = '1';
  const require = createRequire(join(root, 'package.json'));
  /** @type {(options: object) => import('next/dist/server/next').NextServer} */
  const next = require('next');
  // Next would take over upgrades of the server it is told of, and hang up on each. Without it they are requests.
  const httpServer = new EventEmitter();
  const app = next({ dev: false, dir: root, hostname: host, port, httpServer });
  await quietly(() => app.prepare());
  const server = frontDoor(app.getRequestHandler(), { knows: await credentials() });
  await release();
  await new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new LaunchError(listenError(errorCode(error), host, port))));
    server.listen(port, host, () => resolve(undefined));
  });
  const url = `http://${reachable(host)}:${port}`;
  await answers(`${url}/api/v1/healthz`);
  return url;
}

/**
 * The very check the handlers make, for requests that never get to one.
 *
 * @returns {Promise<(request: import('node:http').IncomingMessage) => Promise<boolean>>}
 */
async function credentials() {
  const { authenticate } = await loadTypescript('lib/access/authenticate.ts', { alone: true });
  const { accessPolicy } = await loadTypescript('lib/access/access-policy.ts', { alone: true });
  const policy = accessPolicy(process.env);
  return async ({ method, url, headers }) => {
    /** @type {[string, string][]} */
    const pairs = Object.entries(headers).map(([name, value]) => [name, String(value)]);
    await authenticate(new Request(`http://${headers.host}${url}`, { method, headers: pairs }), policy);
    return true;
  };
}

/**
 * Next's own word on how long its configuration took is of no use to anybody. Its errors go to stderr and stay.
 *
 * @param {() => Promise<void>} prepare
 */
async function quietly(prepare) {
  const { log } = console;
  console.log = () => undefined;
  try {
    await prepare();
  } finally {
    console.log = log;
  }
}

/**
 * An address of "all interfaces" is none to connect to.
 *
 * @param {string} host
 */
function reachable(host) {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** @param {string} url */
async function answers(url) {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    const ok = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new LaunchError(`the server did not answer at ${url} within ${READY_WITHIN_MS / 1_000} s`);
}
