import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import { serverLog } from '../protocol/server-log.mjs';
import { DATA_POLICY, SECURITY_HEADERS } from '../server/access/response-headers.mjs';

/** Smaller bodies hardly shrink. */
const MIN_COMPRESSED_BYTES = 1024;

const ALWAYS = Object.entries(SECURITY_HEADERS).flat();
const OF_DATA = [...ALWAYS, ...Object.entries(DATA_POLICY).flat()];

const compress = promisify(gzip);

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */

/**
 * Adapts one Node request to a Fetch handler, and writes its response to the connection.
 *
 * Failure: a disconnect aborts the request's signal and cancels the response body. A failing body breaks the
 * connection, so that a part can't pass for the whole.
 *
 * @param {(request: Request) => Promise<Response>} handle never rejects
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} response
 */
export async function exchange(handle, incoming, response) {
  const answer = await handle(requestOf(incoming, response));
  if (response.destroyed || response.headersSent) return void answer.body?.cancel().catch(() => {});
  const { headers, status } = answer;
  const list = [...(headers.has('content-security-policy') ? ALWAYS : OF_DATA)];
  for (const [name, value] of headers) list.push(name, value);
  const type = headers.get('content-type') ?? '';
  const isCompressible =
    /^(application\/json|text\/plain)\b/.test(type) && !/\bno-transform\b/.test(headers.get('cache-control') ?? '');
  if (isCompressible) list.push('vary', 'accept-encoding');
  const compresses = isCompressible && /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? ''));
  if ('open' in answer) {
    response.writeHead(status, list);
    response.flushHeaders();
    const source = /** @type {import('../server/access/streamed-response').StreamedResponse} */ (answer).open(
      sinkOf(response),
    );
    response.on('drain', () => source.drained());
    response.once('close', () => source.gone());
    return;
  }
  const { body } = answer;
  if (incoming.method === 'HEAD' || body === null) {
    body?.cancel().catch(() => {});
    if (incoming.method !== 'HEAD' && status >= 200 && status !== 204 && status !== 304)
      list.push('content-length', '0');
    response.writeHead(status, list).end();
  } else if (type.startsWith('application/json')) {
    let bytes = Buffer.from(await answer.arrayBuffer());
    if (compresses && bytes.byteLength >= MIN_COMPRESSED_BYTES) {
      bytes = await compress(bytes);
      list.push('content-encoding', 'gzip');
    }
    if (response.destroyed) return;
    list.push('content-length', String(bytes.byteLength));
    response.writeHead(status, list).end(bytes);
  } else if (compresses) {
    response.writeHead(status, [...list, 'content-encoding', 'gzip']);
    await logBreak(pipeline(Readable.fromWeb(/** @type {any} */ (body)), createGzip(), response));
  } else {
    response.writeHead(status, list);
    response.flushHeaders();
    await logBreak(pipe(body.getReader(), response));
  }
}

/**
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} response
 * @returns {Request} only the members that handlers use
 */
export function requestOf(incoming, response) {
  return /** @type {Request} */ (/** @type {unknown} */ (new IncomingRequest(incoming, response)));
}

/**
 * @param {ServerResponse} response
 * @returns {import('../server/access/streamed-response').Sink}
 */
function sinkOf(response) {
  return {
    get waiting() {
      return response.writableLength;
    },
    write(chunk) {
      if (!response.destroyed) response.write(chunk);
    },
    end() {
      if (!response.destroyed) response.end();
    },
    hangUp() {
      // a finished connection may already carry the next response
      if (!response.writableFinished) response.destroy();
    },
  };
}

/**
 * A plain loop takes a third of a pipeline's time per chunk.
 *
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader
 * @param {ServerResponse} response
 */
async function pipe(reader, response) {
  let drained = () => {};
  response.on('drain', () => drained());
  response.on('close', () => {
    drained();
    reader.cancel().catch(() => {});
  });
  // a source may fail while the client reads nothing
  reader.closed.catch(() => response.destroy());
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (response.destroyed) return;
      if (done) break;
      if (!response.write(value)) {
        await new Promise((resolve) => {
          drained = () => resolve(undefined);
        });
      }
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

/**
 * Logs a broken response, except an abort.
 *
 * @param {Promise<void>} sending
 */
async function logBreak(sending) {
  await sending.catch((error) => {
    const isGone = error?.name === 'AbortError' || error?.code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (!isGone) serverLog('error', 'an answer broke off', { error });
  });
}

/** The members of Request that handlers use, created on demand: a whole Request costs more than the response. */
class IncomingRequest {
  #incoming;
  #response;
  /** @type {Headers | undefined} */
  #headers;
  /** @type {AbortController | undefined} */
  #gone;
  /** @type {ReadableStream | null | undefined} */
  #body;

  /**
   * @param {IncomingMessage} incoming
   * @param {ServerResponse} response
   */
  constructor(incoming, response) {
    this.#incoming = incoming;
    this.#response = response;
  }

  get method() {
    return this.#incoming.method;
  }

  get url() {
    // only the path counts; the Host header is arbitrary and checked separately
    return `http://localhost${this.#incoming.url}`;
  }

  get headers() {
    this.#headers ??= headersOf(this.#incoming);
    return this.#headers;
  }

  get signal() {
    if (this.#gone === undefined) {
      const gone = new AbortController();
      this.#gone = gone;
      const leave = () => {
        if (!this.#response.writableFinished) gone.abort();
      };
      if (this.#response.destroyed) leave();
      else this.#response.once('close', leave);
    }
    return this.#gone.signal;
  }

  get body() {
    this.#body ??= hasBody(this.#incoming) ? bodyOf(this.#incoming) : null;
    return this.#body;
  }
}

/** @param {IncomingMessage} incoming */
function headersOf({ headers }) {
  const all = new Headers();
  for (const name in headers) {
    const value = headers[name];
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) all.append(name, each);
  }
  return all;
}

/** @param {IncomingMessage} incoming */
export function hasBody({ headers }) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** @param {IncomingMessage} incoming */
function bodyOf(incoming) {
  const chunks = incoming.iterator({ destroyOnReturn: false });
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      // drain the rest: the next request of the connection follows it
      async cancel() {
        await chunks.return?.();
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}
