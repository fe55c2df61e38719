import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Endpoint } from '@interlude/runner/host/server-request';
import { reservePort } from './reserve-port.mjs';
import { inProcessServer, type ServerTarget } from './server-target';

/** The dashboard's handlers on a real port that can go down. One per process. */
export class LocalDashboard {
  readonly #target: ServerTarget;
  #server: Server | null = null;
  readonly #port: number;
  /** Requests with matching paths are cut off before any effect. */
  cutsOff: (path: string) => boolean = () => false;

  private constructor(target: ServerTarget, port: number) {
    this.#target = target;
    this.#port = port;
  }

  static async start(): Promise<LocalDashboard> {
    const dashboard = new LocalDashboard(await inProcessServer(), await reservePort());
    await dashboard.up();
    return dashboard;
  }

  readonly endpoint: Endpoint = async () => ({ url: this.url, token: this.token });

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get token(): string {
    return this.#target.token;
  }

  /** Listens; after `down`, on the same port. */
  up(): Promise<void> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    // As in serve-over-http.ts: a blocked process may reuse a connection that it is closing.
    server.keepAliveTimeout = 0;
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
  }

  /** Cuts all connections and refuses new ones. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  async close(): Promise<void> {
    await this.down();
    await this.#target.close();
  }

  /**
   * Sends an authenticated request on a new connection, because `down` may have cut one that `fetch` pools.
   *
   * @throws Error with the response body unless the response is 2xx
   */
  async request<Answer>(path: string, body?: object, method = body === undefined ? 'GET' : 'POST'): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = httpRequest(`${this.url}/api/v1${path}`, { method, headers, agent: false }, resolve);
      sent.once('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
    const answer = await text(response);
    if ((response.statusCode ?? 0) >= 300) throw new Error(`${path} answered ${response.statusCode}: ${answer}`);
    return JSON.parse(answer) as Answer;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/';
    if (this.cutsOff(path)) {
      response.destroy();
      return;
    }
    const { host: _, 'content-encoding': encoding, ...headers } = request.headers as Record<string, string>;
    const raw = Uint8Array.from(await request.toArray().then((chunks) => Buffer.concat(chunks)));
    const body = encoding === 'gzip' ? new TextEncoder().encode(await unzipped(raw)) : raw;
    const answer = await this.#target.send(path, {
      method: request.method ?? 'GET',
      headers: { ...headers, ...(body.byteLength === 0 ? {} : { 'content-length': String(body.byteLength) }) },
      ...(body.byteLength === 0 ? {} : { body }),
    });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (answer.body === null) {
      response.end();
      return;
    }
    const content = Readable.fromWeb(answer.body as never);
    // Aborts the stream when its client disconnects, as Next does.
    response.once('close', () => content.destroy());
    content.on('error', () => response.destroy()).pipe(response);
  }
}

async function unzipped(raw: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'));
  return await text(Readable.fromWeb(stream as never));
}
