import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { placedAt } from '../protocol/base-path.mjs';
import { errorCode } from '../runner/system-error.mjs';
import { theServer } from '../server/process-server.mjs';
import { exchange, requestOf } from './exchange.mjs';
import { frontDoor, isApiPath, pathOf } from './front-door.mjs';
import { LaunchError } from './launch-error.mjs';
import { isPacked, packedConfig, root } from './paths.mjs';
import { listenError } from './port.mjs';

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
        if (api !== null && isApiPath(pathOf(request))) return exchange(api.answer, request, response);
        // Next takes it off by itself
        request.url = placedAt(request.url ?? '/', basePath);
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
  return { url, close: closeGracefully(servers) };
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

/** For a request that is still on its way over a connection that was accepted before. */
const ARRIVING_MS = 100;
/** What an answer may take; what takes longer is cut off. */
const LAST_ANSWERS_MS = 1_000;

/**
 * Follows what HTTP servers have under way, so that they can be closed without cutting anybody off.
 *
 * Ordering: nobody new is let in; whoever is inside gets an answer, with which the connection ends; then all are shut.
 * Failure: an answer that takes too long breaks off, so that nobody takes half of it for the whole, and no answer leaves
 * once this has resolved: what is done afterwards can't be seen half done.
 *
 * @param {readonly import('node:http').Server[]} servers listening
 * @returns {() => Promise<void>} stops listening before it returns; resolves when nothing is under way
 */
function closeGracefully(servers) {
  /** @type {Set<import('node:http').ServerResponse>} */
  const underWay = new Set();
  let isClosing = false;
  let settled = () => {};
  for (const server of servers) {
    // before who answers: an answer that has begun can't say any more that it is the last
    server.prependListener('request', (_request, response) => {
      if (isClosing) response.shouldKeepAlive = false;
      underWay.add(response);
      response.once('close', () => {
        underWay.delete(response);
        if (underWay.size === 0) settled();
      });
    });
  }
  return async () => {
    isClosing = true;
    for (const response of underWay) if (!response.headersSent) response.shouldKeepAlive = false;
    const left = Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    const answered = pause(ARRIVING_MS).then(
      () =>
        new Promise((resolve) => {
          settled = () => resolve(undefined);
          if (underWay.size === 0) settled();
        }),
    );
    await Promise.race([left, answered, pause(LAST_ANSWERS_MS)]);
    for (const server of servers) server.closeAllConnections();
  };
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
