import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer, STATUS_CODES } from 'node:http';

/**
 * The HTTP server before Next: what Node and Next would refuse by themselves (no HTTP at all, a path that is no UTF-8,
 * a method nobody knows) is refused here, with the wire's error body.
 *
 * Failure: whatever a client sends, it gets an answer or a closed connection; no request ends the process.
 */
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Long enough for any network, short enough that idle half-requests don't pile up. Bodies have Node's five minutes. */
const HEADERS_TIMEOUT_MS = 20_000;

/**
 * The connection that is being answered, for a stream that must end and whose reader does not read: bytes that have left
 * the stream lie in Node's buffers, and only closing the socket takes them back. See lib/access/peer.ts.
 *
 * @type {AsyncLocalStorage<{ hangUp(): void }>}
 */
const connections = new AsyncLocalStorage();
Object.assign(globalThis, { [Symbol.for('interlude.connection')]: connections });

/** @typedef {{ status: number, code: string, message: string, headers?: Record<string, string> }} Refusal */

/**
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => Promise<void>} handle
 * @returns {import('node:http').Server} not listening yet
 */
export function frontDoor(handle) {
  // Node would refuse a request without Host by itself, and without a word.
  const options = { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false };
  const server = createServer(options, async (request, response) => {
    const refusal = judge(request);
    if (refusal) return answer(response, refusal);
    try {
      const hangUp = () => {
        // a connection that has finished its answer may be carrying the next one by now
        if (!response.writableFinished) request.socket.destroy();
      };
      await connections.run({ hangUp }, () => handle(request, response));
    } catch (error) {
      process.stderr.write(`[interlude] ${request.method} ${request.url} failed: ${error?.stack ?? error}\n`);
      answer(response, INTERNAL);
    }
  });
  server.on('checkExpectation', (_request, response) => answer(response, EXPECTATION));
  server.on('connect', (_request, socket) => answerRaw(socket, METHOD));
  server.on('clientError', (error, socket) => answerRaw(socket, CLIENT_ERRORS[error.code] ?? NO_HTTP));
  return server;
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
const NO_HTTP = { status: 400, code: 'malformed', message: 'That was no HTTP/1.1 request. Send one.' };
/** @type {Record<string, Refusal>} */
const CLIENT_ERRORS = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'too_large',
    message: 'The address and headers are too long together. Send fewer or shorter ones.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: 'malformed',
    message: 'The request did not arrive in time. Send it again.',
  },
};

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {Refusal | null}
 */
function judge(request) {
  if (!METHODS.includes(request.method ?? '')) return METHOD;
  const hosts = request.rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) return malformed('A request has one Host header.');
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  if (!path.startsWith('/')) return malformed('An address begins with "/" here; this is no proxy.');
  try {
    decodeURIComponent(path);
  } catch {
    return malformed('The path is not valid UTF-8 in percent-encoding. Encode each part with encodeURIComponent.');
  }
  return null;
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
 * For what never became a request.
 *
 * @param {import('node:stream').Duplex} socket
 * @param {Refusal} refusal
 */
function answerRaw(socket, refusal) {
  socket.on('error', () => undefined);
  if (!socket.writable || socket.bytesWritten > 0) return void socket.destroy();
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
