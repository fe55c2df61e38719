import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { prependBasePath } from '../protocol/base-path.mjs';
import { errorCode } from '../runner/system-error.mjs';
import { theServer } from '../server/process-server.mjs';
import { closableDoor } from './close-door.mjs';
import { exchange, requestOf } from './exchange.mjs';
import { frontDoor, isNoPage, pathOf } from './front-door.mjs';
import { isPacked, packedConfig } from './packed.mjs';
import { listenError } from './port.mjs';
import { root } from './root.mjs';
import { LaunchError } from './say.mjs';

const READY_WITHIN_MS = 60_000;

/**
 * Runs the server in this very process, so that whatever ends this process ends the server: there is no child that
 * could outlive a kill -9 and keep the port.
 *
 * @param {string} host
 * @param {{ port: number, release(): Promise<void> }} held the port, as `holdPort` gives it
 * @param {boolean} alsoIpv6 whether to listen on ::1, too, where browsers look first for a name below `localhost`
 * @param {string} basePath
 * @returns {Promise<{ url: string, close(): Promise<void> }>} where it is, once it answers; `close` as `closableDoor` has it
 */
export async function serve(host, { port, release }, alsoIpv6 = false, basePath = '') {
  process.env.NEXT_TELEMETRY_DISABLED = '1';
  if (isPacked) process.env.__NEXT_PRIVATE_STANDALONE_CONFIG = packedConfig(basePath);
  const require = createRequire(join(root, 'package.json'));
  /** @type {(options: object) => import('next/dist/server/next').NextServer} */
  const next = require('next');
  // Next would take over upgrades of the server it is told of, and hang up on each. Without it they are requests.
  const httpServer = new EventEmitter();
  const app = next({ dev: false, dir: root, hostname: host, port, httpServer });
  await quietly(() => app.prepare());
  const page = app.getRequestHandler();
  // Next makes the server at the first request it is given: ours, below. From then on the API never gets to it.
  /** @type {ReturnType<typeof theServer> | null} */
  let api = null;
  const door = () =>
    frontDoor(
      (request, response) => {
        if (api !== null && isNoPage(pathOf(request))) return exchange(api.answer, request, response);
        // Next takes it off by itself
        request.url = prependBasePath(request.url ?? '/', basePath);
        return page(request, response);
      },
      { basePath, knows: async (request, response) => (await api?.knows(requestOf(request, response))) ?? false },
    );
  await release();
  const servers = [await listening(door(), host, port)];
  if (alsoIpv6) servers.push(await listening(door(), '::1', port));
  const url = `http://${reachable(host)}:${port}${basePath}`;
  await answers(`${url}/api/v1/healthz`);
  api = theServer();
  return { url, close: closableDoor(servers) };
}

/**
 * @param {import('node:http').Server} server
 * @param {string} host
 * @param {number} port
 * @returns {Promise<import('node:http').Server>}
 */
function listening(server, host, port) {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new LaunchError(listenError(errorCode(error), host, port))));
    server.listen(port, host, () => resolve(server));
  });
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
