import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { Ledger, refusal } from './ledger';
import { ownPort } from './own-port.mjs';

/**
 * An HTTP server in front of a Ledger that misbehaves as it is told: one fault for each request, then it behaves.
 */
export type Fault =
  | { kind: 'none' }
  /** The connection is cut before anything is read into the ledger. */
  | { kind: 'reset' }
  /** The records are taken, and the connection is cut before the answer. */
  | { kind: 'taken-then-reset' }
  /** The records are taken, and the answer breaks off in the middle. */
  | { kind: 'taken-then-half-an-answer' }
  /** The records are taken, and no answer ever comes. */
  | { kind: 'taken-then-silence' }
  /** The records are taken, and the answer comes late. */
  | { kind: 'slow'; ms: number }
  /** Only the answer is given; nothing is taken. */
  | { kind: 'answer'; status: number; body?: unknown; headers?: Record<string, string> };

interface ReceivedRequest {
  at: number;
  authorization: string | undefined;
  encoding: string | undefined;
  bytes: number;
  producer: { id: string; epoch: number };
  seqs: number[];
}

export class FaultServer {
  readonly ledger = new Ledger();
  readonly requests: ReceivedRequest[] = [];
  /** Judges each request that no scripted fault is left for. */
  behaviour: (request: ReceivedRequest) => Fault = () => ({ kind: 'none' });
  #server: Server | null = null;
  readonly #port: number;
  readonly #script: Fault[] = [];
  readonly #watchers = new Set<() => void>();

  private constructor(port: number) {
    this.#port = port;
  }

  static async start(): Promise<FaultServer> {
    const server = new FaultServer(await ownPort());
    await server.listen();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** What happens to the next requests, one each. */
  script(...faults: Fault[]): void {
    this.#script.push(...faults);
  }

  /** Listens, again on the same port after `close`. */
  listen(): Promise<void> {
    const server = createServer((request, response) => this.#handle(request, response));
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
  }

  /** From now on connections are refused. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** Resolves as soon as `condition` holds; it is looked at after each request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#watchers.add(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // the client went away in mid-request: nothing was asked
    }
    const raw = Buffer.concat(chunks);
    const encoding = request.headers['content-encoding'];
    const body = JSON.parse((encoding === 'gzip' ? gunzipSync(raw) : raw).toString('utf8'));
    const received: ReceivedRequest = {
      at: Date.now(),
      authorization: request.headers.authorization,
      encoding,
      bytes: raw.length,
      producer: body.producer,
      seqs: body.records.map((record: { seq: number }) => record.seq),
    };
    this.requests.push(received);
    void this.#misbehave(this.#script.shift() ?? this.behaviour(received), response, () => this.ledger.take(body));
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }

  async #misbehave(
    fault: Fault,
    response: ServerResponse,
    take: () => { status: number; body: unknown },
  ): Promise<void> {
    if (fault.kind === 'reset') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (fault.kind === 'answer') {
      const body = fault.body ?? refusal(fault.status, 'unavailable', {}).body;
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(JSON.stringify(body));
      return;
    }
    const answer = take();
    const text = JSON.stringify(answer.body);
    if (fault.kind === 'taken-then-reset') response.socket?.resetAndDestroy();
    else if (fault.kind === 'taken-then-half-an-answer') {
      response.writeHead(answer.status, { 'content-length': text.length });
      response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
    } else if (fault.kind === 'none' || fault.kind === 'slow') {
      if (fault.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
      if (response.destroyed) return;
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(text);
    }
  }
}
