import { createServer, STATUS_CODES } from 'node:http';
import { stripBasePath as withoutBase } from '../protocol/base-path.mjs';
import { serverLog } from '../protocol/server-log.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { prepareHeaders } from '../server/access/incoming-headers.mjs';
import { pageRefusal } from '../server/access/page-refusal.mjs';
import { isStrict, STRICT_TRANSPORT } from '../server/access/response-headers.mjs';

/**
 * The HTTP server in front of Next. Answers what Node and Next would refuse on their own (invalid HTTP, invalid UTF-8
 * in the path, unknown methods) with the API's error body.
 *
 * Failure: every client gets a response or a closed connection; no request ends the process.
 */
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Paths that are not pages. Their handlers read or refuse a request's body; Next would buffer a body sent to a page.
 */
const API_PATHS = /^\/(api(\/.*)?|sign-in(\/.*)?|sign-out|healthz|readyz|metrics)$/;

/** @param {import('node:http').IncomingMessage} request */
export function pathOf({ url }) {
  return (url ?? '').split('?', 1)[0] ?? '';
}

/** @param {string} path */
export function isApiPath(path) {
  return API_PATHS.test(path);
}

/** @param {import('node:http').IncomingMessage} request */
function hasBody({ headers }) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Timeout for the headers, and for a body without a valid credential. */
const STRANGER_TIMEOUT_MS = 10_000;
/** Timeout for a body with a valid credential. */
const UPLOAD_TIMEOUT_MS = 300_000;
/** Interval at which Node checks for late requests. */
const CHECK_MS = 1_000;

/** @typedef {(request: import('node:http').IncomingMessage) => Promise<boolean>} CredentialCheck */
/** @typedef {import('../server/access/page-refusal.mjs').Refusal} Refusal */

/**
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) =>
 *   Promise<void>} handle
 * @param {object} [options]
 * @param {CredentialCheck} [options.isAuthenticated] checks the credential; called only if the body is late
 * @param {string} [options.basePath] answers only below it; `handle` gets the rest of the path
 * @param {number} [options.strangerTimeoutMs]
 * @returns {import('node:http').Server} not listening yet
 */
export function frontDoor(
  handle,
  { isAuthenticated = async () => false, basePath = '', strangerTimeoutMs = STRANGER_TIMEOUT_MS } = {},
) {
  const options = {
    headersTimeout: strangerTimeoutMs,
    requestTimeout: UPLOAD_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
    // left to `validate`, because Node refuses a missing Host header with an empty body
    requireHostHeader: false,
  };
  /** @type {WeakSet<import('node:stream').Duplex>} */
  const late = new WeakSet();
  /**
   * Unfinished responses of each connection, in order; a client may pipeline requests.
   *
   * @type {WeakMap<import('node:stream').Duplex, Set<import('node:http').ServerResponse>>}
   */
  const unfinished = new WeakMap();
  const server = createServer(options, async (request, response) => {
    late.delete(request.socket);
    const responses = unfinished.get(request.socket) ?? new Set();
    unfinished.set(request.socket, responses.add(response));
    response.once('close', () => responses.delete(response));
    prepareHeaders(request);
    if (isStrict(request)) {
      for (const [name, value] of Object.entries(STRICT_TRANSPORT)) response.setHeader(name, value);
    }
    const refusal = validate(request) ?? stripBasePath(request, basePath);
    if (refusal) return refuse(response, refusal);
    if (hasBody(request)) enforceBodyTimeout(request, response, isAuthenticated, strangerTimeoutMs);
    try {
      await handle(request, response);
    } catch (error) {
      // path only: a query may contain a sign-in code
      serverLog('error', `${request.method} ${pathOf(request)} failed:`, { error });
      refuse(response, INTERNAL);
    }
  });
  server.on('checkContinue', (request, response) => {
    // Node would write 100 Continue into a response queued behind another
    const go = () => hasBody(request) && !response.headersSent && response.writeContinue();
    if (response.socket === null) response.once('socket', go);
    else go();
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (_request, response) => refuse(response, EXPECTATION));
  server.on('connect', (_request, socket) => {
    if (unfinished.get(socket)?.size) return void socket.destroy();
    refuseRaw(socket, METHOD);
  });
  server.on('clientError', (error, socket) => {
    const refusal = CLIENT_ERRORS[errorCode(error) ?? ''] ?? NOT_HTTP;
    if (refusal !== LATE) return refuseRaw(socket, refusal, unfinished.get(socket));
    // after a suspend, Node runs timers before it reads data that has already arrived
    late.add(socket);
    setImmediate(() => late.has(socket) && refuseRaw(socket, LATE, unfinished.get(socket)));
  });
  return server;
}

/**
 * Disconnects a client whose body doesn't arrive in time, if it has no valid credential or already has its response.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {CredentialCheck} isAuthenticated
 * @param {number} timeoutMs
 */
function enforceBodyTimeout(request, response, isAuthenticated, timeoutMs) {
  const timer = setTimeout(async () => {
    if (request.complete) return;
    const isKnown = !response.writableEnded && (await isAuthenticated(request).catch(() => false));
    if (isKnown || request.complete) return;
    // also aborts the handler that reads the body
    if (response.headersSent) return void request.destroy();
    response.once('finish', () => request.destroy());
    refuse(response, LATE);
  }, timeoutMs);
  request.once('close', () => clearTimeout(timer));
}

/** @type {Refusal} */
const INTERNAL = {
  status: 500,
  code: 'internal',
  message: 'Interlude failed to handle this request. Try again. The server’s log has the cause.',
};
/** @type {Refusal} */
const METHOD = {
  status: 405,
  code: 'method_not_allowed',
  message: `That method is not allowed here. Use one of ${METHODS.join(', ')}.`,
  headers: { allow: METHODS.join(', ') },
};
/** @type {Refusal} */
const EXPECTATION = { status: 417, code: 'malformed', message: 'The only supported expectation is "100-continue".' };
/** @type {Refusal} */
const NOT_HTTP = { status: 400, code: 'malformed', message: 'The request is not valid HTTP/1.1.' };
/** @type {Refusal} */
const LATE = { status: 408, code: 'malformed', message: 'The request did not arrive in time. Send it again.' };
/** @type {Record<string, Refusal>} */
const CLIENT_ERRORS = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'too_large',
    message: 'The URL and headers together are too long. Shorten the URL, or send fewer headers.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: LATE,
};

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {Refusal | null}
 */
function validate(request) {
  if (!METHODS.includes(request.method ?? '')) return METHOD;
  const hosts = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) return malformed('A request has one Host header.');
  const path = pathOf(request);
  if (!path.startsWith('/')) return malformed('The request target must begin with "/": this server is not a proxy.');
  try {
    decodeURIComponent(path);
  } catch {
    return malformed('The path is not valid UTF-8 in percent-encoding. Encode each part with encodeURIComponent.');
  }
  return null;
}

/**
 * Removes the base path from the request's URL.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} basePath
 * @returns {Refusal | null}
 */
function stripBasePath(request, basePath) {
  if (basePath !== '') {
    // resolves ".." as all later code does, so the path can't escape the base path
    const { pathname, search } = new URL(`http://localhost${request.url}`);
    const inside = withoutBase(pathname + search, basePath);
    if (inside === null) return outsideBasePath(basePath);
    request.url = inside;
  }
  if (isApiPath(pathOf(request))) return null;
  const { method, url, headers } = request;
  return pageRefusal({ method, url, isAction: headers['next-action'] !== undefined, hasBody: hasBody(request) });
}

/**
 * @param {string} basePath
 * @returns {Refusal}
 */
function outsideBasePath(basePath) {
  return {
    status: 404,
    code: 'not_found',
    message: `Nothing is served at this path. This Interlude is at ${basePath}.`,
  };
}

/**
 * @param {string} message
 * @returns {Refusal}
 */
function malformed(message) {
  return { status: 400, code: 'malformed', message };
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {Refusal} refusal
 */
function refuse(response, refusal) {
  if (response.headersSent) return void response.destroy();
  response.writeHead(refusal.status, { ...headersOf(refusal), connection: 'close' });
  response.end(bodyOf(refusal));
}

/**
 * Answers bytes that are not a complete request. They may be the rest of the previous request's body; then this becomes
 * the response to that request. Destroys the socket if a response has started or several are pending, because the
 * client would read the refusal as part of one.
 *
 * @param {import('node:stream').Duplex} socket
 * @param {Refusal} refusal
 * @param {Iterable<import('node:http').ServerResponse>} [unfinished] responses of this connection
 */
function refuseRaw(socket, refusal, unfinished = []) {
  socket.on('error', () => undefined);
  const [response, ...more] = unfinished;
  const isAwaited = response?.headersSent || more.length > 0;
  if (!socket.writable || isAwaited) return void socket.destroy();
  const headers = { ...headersOf(refusal), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const start = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n`;
  socket.end(`${start}${lines.join('')}\r\n${bodyOf(refusal)}`, () => socket.destroy());
}

/** @param {Refusal} refusal */
function headersOf(refusal) {
  return {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(bodyOf(refusal))),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...refusal.headers,
  };
}

/** @param {Refusal} refusal */
function bodyOf({ code, message }) {
  return JSON.stringify({ error: { code, message } });
}
