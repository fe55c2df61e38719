import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { removeControlFile, writeControlFile } from './control-file';
import { answerTo, type ControlAnswer, type ControlHandlers } from './routes';

/**
 * The server that an agent's hooks talk to, on loopback, with its own port and secret.
 *
 * Ordering: a request is handled as soon as it is read; two hooks that run at once may arrive in either order.
 * Failure: everything is answered from memory; that a hook holds its agent is stored first, which takes a moment at
 * most. Only who says for how long is kept waiting, until then or until he is gone. A handler that throws is answered 500 and logged; a request that is too large, too slow or not from here never
 * reaches a handler.
 */
export interface ControlPortOptions {
  /** Where the hooks look for it. @see controlPath */
  file: string;
  handlers: ControlHandlers;
  onError?: (message: string) => void;
}

/** Room for a prompt with a file pasted into it, and no more. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const REQUEST_MS = 5_000;

export class ControlPort {
  readonly url: string;
  readonly secret: string;
  readonly #server: Server;
  readonly #file: string;

  private constructor(server: Server, url: string, secret: string, file: string) {
    this.#server = server;
    this.url = url;
    this.secret = secret;
    this.#file = file;
  }

  static async open({ file, handlers, onError }: ControlPortOptions): Promise<ControlPort> {
    const secret = randomBytes(32).toString('base64url');
    const expected = digest(`Bearer ${secret}`);
    let host = '';
    const server = createServer((request, response) => {
      void handle(request, response).catch((error) => {
        onError?.(`the control port failed on ${request.method} ${request.url}: ${String(error)}`);
        reply(response, { status: 500, body: { error: 'the companion failed; see its log' } });
      });
    });
    server.requestTimeout = REQUEST_MS;
    server.headersTimeout = REQUEST_MS;
    server.keepAliveTimeout = 1_000;
    server.maxConnections = 256;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const port = new ControlPort(server, `http://${host}`, secret, file);
    try {
      await writeControlFile(file, { url: port.url, secret, pid: process.pid });
    } catch (error) {
      server.close();
      throw error;
    }
    return port;

    async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
      // A page in a browser can reach loopback too: it neither knows the secret nor may it name another host.
      if (request.headers.host !== host) return reply(response, { status: 421, body: { error: 'not this host' } });
      const given = request.headers.authorization ?? '';
      const isOpen = timingSafeEqual(digest(given), expected);
      const ticketOf = isOpen ? null : (handlers.sessionOf?.(given.replace(/^Bearer /, '')) ?? null);
      if (!isOpen && ticketOf === null) {
        return reply(response, { status: 401, body: { error: 'the secret is missing or wrong' } });
      }
      const body = await readBody(request);
      if (body === null) return reply(response, { status: 413, body: { error: 'the request is too large' } });
      const { pathname, searchParams } = new URL(request.url ?? '/', `http://${host}`);
      const method = request.method ?? 'GET';
      const gone = new AbortController();
      response.once('close', () => response.writableFinished || gone.abort());
      const { signal } = gone;
      reply(
        response,
        await answerTo({ method, path: pathname, query: searchParams, body, ticketOf, signal }, handlers),
      );
    }
  }

  /** Accepts nothing more; running requests are cut off. */
  async close(): Promise<void> {
    await removeControlFile(this.#file, this.secret);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

function reply(response: ServerResponse, { status, body }: ControlAnswer): void {
  if (response.headersSent) return;
  const isText = typeof body === 'string';
  const text = isText ? body : `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    // Still read to its end: a client that is cut off in mid-request sees no answer.
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk as Buffer);
    else chunks.length = 0;
    if (bytes > 8 * MAX_BODY_BYTES) break;
  }
  return bytes > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}

/** Both sides as digests: of one length, whatever was sent. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
