import { createServer, STATUS_CODES } from 'node:http';
import { stripBasePath } from '../protocol/base-path.mjs';
import { serverLog } from '../protocol/server-log.mjs';
import { errorCode } from '../runner/system-error.mjs';
import { prepareHeaders } from '../server/access/incoming-headers.mjs';
import { pageRefusal } from '../server/access/page-refusal.mjs';
import { isStrict, STRICT_TRANSPORT } from '../server/access/response-headers.mjs';
import { hasBody } from './exchange.mjs';

/**
 * The HTTP server before Next: what Node and Next would refuse by themselves (no HTTP at all, a path that is no UTF-8,
 * a method nobody knows) is refused here, with the wire's error body.
 *
 * Failure: whatever a client sends, it gets an answer or a closed connection; no request ends the process.
 */
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Everything that is not a page. Its handlers read a request's body or refuse it; Next would copy one sent to a page.
 */
const NO_PAGE = /^\/(api(\/.*)?|sign-in(\/.*)?|sign-out|healthz|readyz|metrics)$/;

/** @param {import('node:http').IncomingMessage} request */
export function pathOf({ url }) {
  return (url ?? '').split('?', 1)[0] ?? '';
}

/** @param {string} path */
export function isNoPage(path) {
  return NO_PAGE.test(path);
}

/**
 * Long enough for any network, short enough that half requests don't pile up: for headers, and for a stranger's body.
 */
const STRANGER_TIMEOUT_MS = 10_000;
/** For a body sent with a good credential. */
const UPLOAD_TIMEOUT_MS = 300_000;
/** How often Node looks for requests that are late. */
const LOOK_EVERY_MS = 1_000;

/**
 * @typedef {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) =>
 * Promise<boolean>} Judge
 */
/** @typedef {import('../server/access/page-refusal.mjs').Refusal} Refusal */

/**
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) =>
 *   Promise<void>} handle
 * @param {object} [options]
 * @param {Judge} [options.knows] whether a request carries
 *   a good credential; asked only when its body is late
 * @param {string} [options.basePath] what is not beneath it is not here; `handle` is given the rest of the path
 * @param {number} [options.strangerTimeoutMs]
 * @returns {import('node:http').Server} not listening yet
 */
export function frontDoor(
  handle,
  { knows = async () => false, basePath = '', strangerTimeoutMs = STRANGER_TIMEOUT_MS } = {},
) {
  const options = {
    headersTimeout: strangerTimeoutMs,
    requestTimeout: UPLOAD_TIMEOUT_MS,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    // Node would refuse a request without Host by itself, and without a word.
    requireHostHeader: false,
  };
  /** @type {WeakSet<import('node:stream').Duplex>} */
  const late = new WeakSet();
  /**
   * The unfinished responses of each connection, in order. A client may send its next request before the last response.
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
    const refusal = judge(request) ?? enter(request, basePath);
    if (refusal) return answer(response, refusal);
    if (hasBody(request)) cutOffLate(request, response, knows, strangerTimeoutMs);
    try {
      await handle(request, response);
    } catch (error) {
      // the path only: a query may hold a code to sign in
      serverLog('error', `${request.method} ${pathOf(request)} failed:`, { error });
      answer(response, INTERNAL);
    }
  });
  server.on('checkContinue', (request, response) => {
    // Node would write 100 Continue into a response that is queued behind another
    const go = () => hasBody(request) && !response.headersSent && response.writeContinue();
    if (response.socket === null) response.once('socket', go);
    else go();
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (_request, response) => answer(response, EXPECTATION));
  server.on('connect', (_request, socket) => {
    if (unfinished.get(socket)?.size) return void socket.destroy();
    answerRaw(socket, METHOD);
  });
  server.on('clientError', (error, socket) => {
    const refusal = CLIENT_ERRORS[errorCode(error) ?? ''] ?? NO_HTTP;
    if (refusal !== LATE) return answerRaw(socket, refusal, unfinished.get(socket));
    // After the process was suspended, Node checks its clock before it reads what has arrived meanwhile.
    late.add(socket);
    setImmediate(() => late.has(socket) && answerRaw(socket, LATE, unfinished.get(socket)));
  });
  return server;
}

/**
 * Hangs up if a body does not arrive from somebody without a credential, or after the answer was sent without it.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Judge} knows
 * @param {number} timeoutMs
 */
function cutOffLate(request, response, knows, timeoutMs) {
  const timer = setTimeout(async () => {
    if (request.complete) return;
    const isKnown = !response.writableEnded && (await knows(request, response).catch(() => false));
    if (isKnown || request.complete) return;
    // the handler that reads the body must come to an end with it, too
    if (response.headersSent) return void request.destroy();
    response.once('finish', () => request.destroy());
    answer(response, LATE);
  }, timeoutMs);
  request.once('close', () => clearTimeout(timer));
}

/** @type {Refusal} */
const INTERNAL = {
  status: 500,
  code: 'internal',
  message: 'Interlude failed to handle this request; its own log has the cause. Try again.',
};
/** @type {Refusal} */
const METHOD = {
  status: 405,
  code: 'method_not_allowed',
  message: `That method is not allowed here. Use one of ${METHODS.join(', ')}.`,
  headers: { allow: METHODS.join(', ') },
};
/** @type {Refusal} */
const EXPECTATION = { status: 417, code: 'malformed', message: 'The only expectation met here is "100-continue".' };
/** @type {Refusal} */
const NO_HTTP = { status: 400, code: 'malformed', message: 'The request is not valid HTTP/1.1.' };
/** @type {Refusal} */
const LATE = { status: 408, code: 'malformed', message: 'The request did not arrive in time. Send it again.' };
/** @type {Record<string, Refusal>} */
const CLIENT_ERRORS = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'too_large',
    message: 'The address and headers are too long together. Send fewer or shorter ones.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: LATE,
};

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {Refusal | null}
 */
function judge(request) {
  if (!METHODS.includes(request.method ?? '')) return METHOD;
  const hosts = request.rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length;
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
 * From here on the path is without what it is beneath.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} basePath
 * @returns {Refusal | null}
 */
function enter(request, basePath) {
  if (basePath !== '') {
    // as everybody reads it who comes after: without "..", which would lead out again
    const { pathname, search } = new URL(`http://localhost${request.url}`);
    const inside = stripBasePath(pathname + search, basePath);
    if (inside === null) return elsewhere(basePath);
    request.url = inside;
  }
  if (isNoPage(pathOf(request))) return null;
  const { method, url, headers } = request;
  return pageRefusal({ method, url, isAction: headers['next-action'] !== undefined, hasBody: hasBody(request) });
}

/**
 * @param {string} basePath
 * @returns {Refusal}
 */
function elsewhere(basePath) {
  return { status: 404, code: 'not_found', message: `There is nothing here: this Interlude is at ${basePath}.` };
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
function answer(response, refusal) {
  if (response.headersSent) return void response.destroy();
  response.writeHead(refusal.status, { ...headersOf(refusal), connection: 'close' });
  response.end(bodyOf(refusal));
}

/**
 * Answers bytes that form no complete request. They may be the rest of the previous request's body; the refusal then
 * answers that request. Destroys the socket if a response has begun or several are pending, because the client would read
 * the refusal as part of one of them.
 *
 * @param {import('node:stream').Duplex} socket
 * @param {Refusal} refusal
 * @param {Iterable<import('node:http').ServerResponse>} [unfinished] the responses of this connection
 */
function answerRaw(socket, refusal, unfinished = []) {
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
