import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
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

/** Stands before a dashboard under the name of its own that browsers know it by, and keeps what passed. */
export class EmbedFront {
  readonly passed: Passed[] = [];
  /** Every embed token that was given out. */
  readonly tokens: string[] = [];
  readonly #server;
  readonly #target: { url: string; token: string };
  readonly port: number;

  private constructor(target: { url: string; token: string }, port: number) {
    this.#target = target;
    this.port = port;
    this.#server = createServer((incoming, outgoing) => this.#answer(incoming, outgoing));
  }

  static async start(port: number, target: { url: string; token: string }): Promise<EmbedFront> {
    const front = new EmbedFront(target, port);
    await new Promise<void>((resolve) => front.#server.listen(port, '127.0.0.1', resolve));
    return front;
  }

  static freePort(): Promise<number> {
    return ownPort();
  }

  /** From now on it is taken no more. */
  async revoke(token: string): Promise<void> {
    const api = `${this.#target.url}/api/v1`;
    const me = await fetch(`${api}/me`, { headers: { authorization: `Bearer ${token}` } });
    const { credentialId } = (await me.json()) as { credentialId: string };
    const headers = { authorization: `Bearer ${this.#target.token}` };
    const answer = await fetch(`${api}/credentials/${credentialId}`, { method: 'DELETE', headers });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  }

  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve);
      this.#server.closeAllConnections();
    });
  }

  #answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
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
    const { hostname, port } = new URL(this.#target.url);
    const onward = request({ hostname, port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      if (url === '/api/v1/embed-tokens')
        void json(answer).then((made) => this.tokens.push((made as { token: string }).token));
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}
