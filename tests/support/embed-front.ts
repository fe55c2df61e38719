import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { ownPort } from './own-port.mjs';

/** What a server of embed tokens was asked, as a network would have seen it. */
export interface Passed {
  method: string;
  path: string;
  hasCookie: boolean;
  /** The token, or null. */
  bearer: string | null;
  origin: string | null;
  destination: string | null;
}

interface Issued {
  target: unknown;
  parentOrigin: string | null;
  mayAct: boolean;
  expiresAt: number;
}

/** What an embed token is asked for with. */
export interface TokenWish {
  sessionId?: string;
  agentId?: string;
  parentOrigin: string;
  ttlSeconds?: number;
  mayAct?: boolean;
}

/**
 * Stands before a dashboard and does for it what is to be done for embeds: gives out tokens that end, says what each is
 * for, refuses those that are over, and ends their streams. It keeps what passed.
 */
export class EmbedFront {
  readonly passed: Passed[] = [];
  readonly #tokens = new Map<string, Issued>();
  readonly #streams = new Map<ServerResponse, string>();
  readonly #server;
  readonly #target: { url: string; token: string };
  readonly port: number;

  private constructor(target: { url: string; token: string }, port: number) {
    this.#target = target;
    this.port = port;
    this.#server = createServer((incoming, outgoing) => void this.#answer(incoming, outgoing));
  }

  static async start(port: number, target: { url: string; token: string }): Promise<EmbedFront> {
    const front = new EmbedFront(target, port);
    await new Promise<void>((resolve) => front.#server.listen(port, '127.0.0.1', resolve));
    return front;
  }

  static freePort(): Promise<number> {
    return ownPort();
  }

  /** Every token that was given out. */
  get tokens(): string[] {
    return [...this.#tokens.keys()];
  }

  /** From now on it is taken no more. */
  revoke(token: string): void {
    const issued = this.#tokens.get(token);
    if (issued) issued.expiresAt = 0;
    for (const [stream, of] of this.#streams) if (of === token) bye(stream);
  }

  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve);
      this.#server.closeAllConnections();
    });
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = incoming;
    const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? null;
    this.passed.push({
      method,
      path: url,
      hasCookie: headers.cookie !== undefined,
      bearer,
      origin: headers.origin ?? null,
      destination: (headers['sec-fetch-dest'] as string | undefined) ?? null,
    });
    const issued = bearer === null ? undefined : this.#tokens.get(bearer);
    if (url === '/api/v1/embed-tokens' && method === 'POST') return this.#issue(incoming, outgoing, bearer);
    if (issued !== undefined && bearer !== null) {
      const opaque = headers.origin === 'null' ? { 'access-control-allow-origin': '*', vary: 'origin' } : {};
      if (issued.expiresAt <= Date.now()) {
        const error = { code: 'unauthenticated', message: 'This token has ended. Ask for another one.' };
        outgoing.writeHead(401, { 'content-type': 'application/json', 'www-authenticate': 'Bearer', ...opaque });
        outgoing.end(JSON.stringify({ error }));
        return;
      }
      if (url === '/api/v1/embed-token') {
        outgoing.writeHead(200, { 'content-type': 'application/json', ...opaque });
        outgoing.end(JSON.stringify({ role: issued.mayAct ? 'operator' : 'viewer', ...issued }));
        return;
      }
    }
    const authorization = issued === undefined ? headers.authorization : `Bearer ${this.#target.token}`;
    const { hostname, port } = new URL(this.#target.url);
    const onward = request(
      { hostname, port, method, path: url, headers: { ...headers, ...(authorization && { authorization }) } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
      },
    );
    if (issued !== undefined && bearer !== null && url.startsWith('/api/v1/stream')) {
      this.#streams.set(outgoing, bearer);
      const end = setTimeout(bye, issued.expiresAt - Date.now(), outgoing);
      outgoing.once('close', () => {
        clearTimeout(end);
        this.#streams.delete(outgoing);
      });
    }
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }

  async #issue(incoming: IncomingMessage, outgoing: ServerResponse, bearer: string | null): Promise<void> {
    if (bearer !== this.#target.token) return void outgoing.writeHead(401).end();
    const wish = JSON.parse(await text(incoming)) as TokenWish;
    const token = `embed_${randomBytes(24).toString('base64url')}`;
    const expiresAt = Date.now() + (wish.ttlSeconds ?? 300) * 1000;
    const { parentOrigin, mayAct = false, sessionId, agentId } = wish;
    this.#tokens.set(token, { target: { sessionId, agentId }, parentOrigin, mayAct, expiresAt });
    outgoing.writeHead(201, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ token, expiresAt }));
  }
}

function bye(stream: ServerResponse): void {
  if (!stream.writableEnded) stream.end('event: bye\ndata: {"reason":"unauthorized"}\n\n');
}
