import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { prependBasePath } from '../protocol/base-path.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { theServer } from '../server/process-server.mjs';
import { exchange } from './exchange.mjs';
import { frontDoor, isApiPath, pathOf } from './front-door.mjs';
import { LaunchError } from './launch-error.mjs';
import { isPacked, packedConfig, root } from './paths.mjs';
import { listenError, reachable } from './port.mjs';

const READY_WITHIN_MS = 60_000;

/**
 * Runs the server in this process: a child could outlive a kill -9 of its parent and keep the port.
 *
 * @param {string} host
 * @param {{ port: number, release(): Promise<void> }} reserved by `reservePort`
 * @param {boolean} alsoIpv6 also listens on ::1, which browsers try first for a name below `localhost`
 * @param {string} basePath
 * @returns {Promise<{ url: string, close(): Promise<void> }>} resolves once it answers; `close` is from
 * `closeGracefully`
 */
export async function serve(host, { port, release }, alsoIpv6 = false, basePath = '') {
  process.env.NEXT_TELEMETRY_DISABLED = '1';
  if (isPacked) process.env.__NEXT_PRIVATE_STANDALONE_CONFIG = packedConfig(basePath);
  const require = createRequire(join(root, 'package.json'));
  /** @type {(options: object) => import('next/dist/server/next').NextServer} */
  const next = require('next');
  // Next would close every upgrade request of a real server; without one, these are plain requests
  const httpServer = new EventEmitter();
  const app = next({ dev: false, dir: root, hostname: host, port, httpServer });
  await quietly(() => app.prepare());
  const page = app.getRequestHandler();
  // Next creates the server on its first request, below; after that, Next never sees API requests
  /** @type {ReturnType<typeof theServer> | null} */
  let api = null;
  const createDoor = () =>
    frontDoor(
      (request, response) => {
        if (api !== null && isApiPath(pathOf(request))) return exchange(api.respond, request, response);
        // Next expects the base path
        request.url = prependBasePath(request.url ?? '/', basePath);
        return page(request, response);
      },
      { basePath, isAuthenticated: async (request) => (await api?.isAuthenticated(withoutBody(request))) ?? false },
    );
  await release();
  const servers = [await listening(createDoor(), host, port)];
  if (alsoIpv6) servers.push(await listening(createDoor(), '::1', port));
  const url = `http://${reachable(host)}:${port}${basePath}`;
  await answers(`${url}/api/v1/healthz`);
  api = theServer();
  requireSettings(api);
  return { url, close: closeGracefully(servers) };
}

/** @param {ReturnType<typeof theServer>} server */
function requireSettings(server) {
  try {
    server.checkSettings();
  } catch (error) {
    throw new LaunchError(/** @type {Error} */ (error).message, 2);
  }
}

/**
 * @param {import('node:http').IncomingMessage} incoming
 * @throws {TypeError} for a method that Fetch forbids
 */
function withoutBody({ method, headers }) {
  const list = Object.entries(headers).map(([name, value]) => /** @type {[string, string]} */ ([name, String(value)]));
  return new Request('http://localhost', { method, headers: list });
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
 * Drops Next's start-up message. Errors still go to stderr.
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

/** @param {string} url */
async function answers(url) {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    const ok = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await pause(50);
  }
  throw new LaunchError(
    `the server did not answer at ${url} within ${READY_WITHIN_MS / 1_000} s; see its output above`,
  );
}

/** Grace period for requests already sent on open connections. */
const ARRIVAL_GRACE_MS = 100;
/** Maximum wait for responses in progress. */
const MAX_RESPONSE_WAIT_MS = 1_000;

/**
 * Tracks open responses of HTTP servers, so they can close without cutting off clients.
 *
 * Ordering: stops accepting connections; answers open requests and closes their connections; then destroys the
 * remaining ones.
 * Failure: a response that takes too long is aborted, so the client can't take it for complete. No response is sent
 * after the promise resolves.
 *
 * @param {readonly import('node:http').Server[]} servers listening
 * @returns {() => Promise<void>} stops listening immediately; resolves when no response is open
 */
function closeGracefully(servers) {
  /** @type {Set<import('node:http').ServerResponse>} */
  const openResponses = new Set();
  let isClosing = false;
  let settled = () => {};
  for (const server of servers) {
    // registered before other listeners, because a started response can no longer announce the close
    server.prependListener('request', (_request, response) => {
      if (isClosing) response.shouldKeepAlive = false;
      openResponses.add(response);
      response.once('close', () => {
        openResponses.delete(response);
        if (openResponses.size === 0) settled();
      });
    });
  }
  return async () => {
    isClosing = true;
    for (const response of openResponses) if (!response.headersSent) response.shouldKeepAlive = false;
    const closed = Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    const answered = pause(ARRIVAL_GRACE_MS).then(
      () =>
        new Promise((resolve) => {
          settled = () => resolve(undefined);
          if (openResponses.size === 0) settled();
        }),
    );
    await Promise.race([closed, answered, pause(MAX_RESPONSE_WAIT_MS)]);
    for (const server of servers) server.closeAllConnections();
  };
}
