import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { serverLog } from '../protocol/server-log.mjs';
import { DATA_POLICY, SECURITY_HEADERS } from '../server/access/response-headers.mjs';

/** Smaller bodies are not worth compressing. */
const MIN_COMPRESSED_BYTES = 1024;

const compress = promisify(gzip);

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */

/**
 * Answers one Node request with a Fetch handler, through Hono's adapter. Adds the security headers and compresses.
 *
 * Failure: a disconnect aborts the request's signal and cancels the response body. A failing body breaks the
 * connection, so the client can't take a partial response for a complete one.
 *
 * @param {(request: Request) => Promise<Response>} handle never rejects
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @returns {Promise<void>}
 */
export async function exchange(handle, incoming, outgoing) {
  const listener = getRequestListener(
    async (request) => {
      const response = await handle(request);
      if (outgoing.destroyed || outgoing.headersSent) {
        response.body?.cancel().catch(() => {});
        return RESPONSE_ALREADY_SENT;
      }
      return 'open' in response
        ? openStream(/** @type {StreamedResponse} */ (response), outgoing)
        : encoded(response, incoming, outgoing);
    },
    { hostname: 'localhost', overrideGlobalObjects: false },
  );
  // Discards a body that the handler abandoned: unread, it would block the connection's next request.
  outgoing.once('finish', () => incoming.readableEnded || incoming.removeAllListeners('data').resume());
  await listener(incoming, outgoing);
}

/** @typedef {import('../server/access/streamed-response').StreamedResponse} StreamedResponse */

/**
 * Bypasses the body's stream, whose overhead per frame exceeds the write itself.
 *
 * @param {StreamedResponse} response
 * @param {ServerResponse} outgoing
 */
function openStream(response, outgoing) {
  outgoing.writeHead(response.status, withPolicy(response.headers).flat());
  outgoing.flushHeaders();
  const source = response.open({
    get waiting() {
      return outgoing.writableLength;
    },
    write(chunk) {
      if (!outgoing.destroyed) outgoing.write(chunk);
    },
    end() {
      if (!outgoing.destroyed) outgoing.end();
    },
    hangUp() {
      // a finished connection may already carry the next response
      if (!outgoing.writableFinished) outgoing.destroy();
    },
  });
  outgoing.on('drain', () => source.drained());
  outgoing.once('close', () => source.disconnected());
  return RESPONSE_ALREADY_SENT;
}

const EVERY_RESPONSE = Object.entries(SECURITY_HEADERS);
const DATA_RESPONSE = [...EVERY_RESPONSE, ...Object.entries(DATA_POLICY)];

/**
 * @param {Headers} headers
 * @returns {[name: string, value: string][]} pairs, because Headers cost more than the rest of a small response
 */
const withPolicy = (headers) => [
  ...(headers.has('content-security-policy') ? EVERY_RESPONSE : DATA_RESPONSE),
  ...headers,
];

/**
 * Sends JSON and empty bodies without the adapter, which would build and read a second Response.
 *
 * @param {Response} response
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @returns {Promise<Response>}
 */
async function encoded(response, incoming, outgoing) {
  const { status, headers: own, body } = response;
  const headers = withPolicy(own);
  const type = own.get('content-type') ?? '';
  const isJson = type.startsWith('application/json');
  const isCompressible =
    (isJson || type.startsWith('text/plain')) && !/\bno-transform\b/.test(own.get('cache-control') ?? '');
  if (isCompressible) headers.push(['vary', 'accept-encoding']);
  if (body === null || incoming.method === 'HEAD') {
    body?.cancel().catch(() => {});
    if (body === null && status !== 204 && status !== 304) headers.push(['content-length', '0']);
    return send(outgoing, status, headers);
  }
  const compresses = isCompressible && /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? ''));
  if (isJson) {
    const plain = Buffer.from(await response.arrayBuffer());
    const isPacked = compresses && plain.byteLength >= MIN_COMPRESSED_BYTES;
    if (isPacked) headers.push(['content-encoding', 'gzip']);
    const bytes = isPacked ? await compress(plain) : plain;
    headers.push(['content-length', String(bytes.byteLength)]);
    return send(outgoing, status, headers, bytes);
  }
  const guarded = destroyOnError(body, outgoing);
  if (!compresses) return new Response(guarded, { status, headers });
  headers.push(['content-encoding', 'gzip']);
  const packed = guarded.pipeThrough(/** @type {any} */ (new CompressionStream('gzip')));
  return new Response(packed, { status, headers });
}

/**
 * @param {ServerResponse} outgoing
 * @param {number} status
 * @param {[name: string, value: string][]} headers
 * @param {Buffer} [bytes]
 */
function send(outgoing, status, headers, bytes) {
  outgoing.writeHead(status, headers.flat()).end(bytes);
  return RESPONSE_ALREADY_SENT;
}

/**
 * Destroys the connection when the body fails: the adapter would append the error to the data already sent.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {ServerResponse} outgoing
 * @returns {ReadableStream<Uint8Array>} ends where `body` fails
 */
function destroyOnError(body, outgoing) {
  const reader = body.getReader();
  // Watches the body here and not in `pull`, which only runs while the client reads.
  reader.closed.catch((error) => {
    if (error?.name !== 'AbortError' && !outgoing.destroyed) serverLog('error', 'a response was cut off', { error });
    outgoing.destroy();
  });
  return new ReadableStream(
    {
      async pull(controller) {
        const { value } = await reader.read().catch(() => ({ value: undefined }));
        if (value === undefined) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
