import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type Fields, fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { API_BASE } from '@interlude/protocol/version';
import { answer, type FakeAnswer, refusal } from './fake-answer';
import { FakeCommands } from './fake-commands';
import { type EventsRequest, FakeLedger } from './fake-ledger';

/**
 * An Interlude that misbehaves as it is told, in front of one runner. It keeps what a correct one keeps.
 *
 * Ordering: requests are judged in the order of their arrival; commands are sent in the order in which they were asked.
 * Failure: whatever it does to a request, `seen` has that request, so a runner is judged by what it did.
 */
export type Fault =
  /** The connection is cut and nothing is taken. */
  | { kind: 'cut' }
  /** The records are taken, and the connection is cut before the answer. */
  | { kind: 'taken-then-cut' }
  /** The records are taken, and the answer breaks off in the middle. */
  | { kind: 'half-an-answer' }
  /** The records are taken, and the answer comes late. */
  | { kind: 'slow'; ms: number }
  /** Nothing is taken. */
  | { kind: 'refuse'; status: number; code: string; retryAfter?: number };

/** A request to `POST /events`, as it came. */
export interface SeenRequest {
  at: number;
  bytes: number;
  producer: { id: string; epoch: number };
  records: Fields[];
  /** Null while it is under way, and where the connection was cut. */
  status: number | null;
  /** When it was answered, or cut. */
  endedAt: number | null;
}

export class FakeInterlude {
  readonly ledger = new FakeLedger();
  readonly seen: SeenRequest[] = [];
  readonly commands = new FakeCommands(this.ledger);
  /** What becomes of each request to `POST /events`. */
  weather: (request: SeenRequest) => Fault | null = () => null;
  readonly #server: Server;
  readonly #token: string;
  readonly #sockets = new Set<Socket>();
  #isAway = false;

  private constructor(token: string) {
    this.#token = token;
    this.#server = createServer((request, response) => {
      // What can't even be read is answered by nobody.
      this.#handle(request, response).catch(() => response.destroy());
    });
    this.#server.on('connection', (socket) => {
      if (this.#isAway) socket.destroy();
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(token: string): Promise<FakeInterlude> {
    const fake = new FakeInterlude(token);
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject);
      fake.#server.listen(0, '127.0.0.1', resolve);
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection and takes no other: as a machine that is off, at an address that stays ours. */
  set isAway(isAway: boolean) {
    this.#isAway = isAway;
    if (isAway) for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.commands.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.isAway = true;
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake');
    const path = pathname.startsWith(API_BASE) ? pathname.slice(API_BASE.length) : pathname;
    if (path === '/healthz' || path === '/readyz') return answer(response, { status: 200, body: { status: 'ok' } });
    if (request.headers.authorization !== `Bearer ${this.#token}`) {
      return answer(response, refusal(401, 'unauthenticated', {}));
    }
    const route = `${request.method} ${path}`;
    const raw = Buffer.concat(chunks);
    if (route === 'POST /events') return await this.#events(raw, request.headers['content-encoding'], response);
    const [, acked] = /^POST \/agents\/[^/]+\/commands\/([^/]+)\/ack$/.exec(route) ?? [];
    if (acked !== undefined)
      return answer(response, this.commands.acknowledge(decodeURIComponent(acked), fieldsOf(parseJson(`${raw}`))));
    if (/^GET \/agents\/[^/]+\/commands$/.test(route)) {
      return this.commands.open(searchParams, textOf(request.headers['last-event-id']), response);
    }
    if (/^GET \/agents\/[^/]+\/reply-obligations$/.test(route)) {
      return answer(response, { status: 200, body: { position: '0', obligations: [] } });
    }
    answer(response, refusal(404, 'not_found', {}));
  }

  async #events(raw: Buffer, encoding: string | undefined, response: ServerResponse): Promise<void> {
    const unpacked = encoding === 'gzip' ? gunzipSync(raw) : raw;
    const body = fieldsOf(parseJson(`${unpacked}`)) as unknown as EventsRequest;
    if (fieldsOf(body.producer).id === undefined || !Array.isArray(body.records)) {
      return answer(response, refusal(400, 'malformed', {}));
    }
    const { producer, records } = body;
    const seen: SeenRequest = {
      at: Date.now(),
      bytes: unpacked.length,
      producer,
      records,
      status: null,
      endedAt: null,
    };
    this.seen.push(seen);
    this.ledger.notice(body);
    const isProbe = records[0]?.kind === 'probe';
    const fault = isProbe ? null : this.weather(seen);
    const end = (said: FakeAnswer, headers: Record<string, string> = {}) => {
      [seen.status, seen.endedAt] = [said.status, Date.now()];
      answer(response, said, headers);
    };
    if (fault?.kind === 'cut') return this.#cut(seen, response);
    if (fault?.kind === 'refuse') {
      const { status, code, retryAfter } = fault;
      return end(refusal(status, code, {}), retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) });
    }
    if (unpacked.length > MAX_REQUEST_BYTES) return end(refusal(413, 'too_large', { maxBytes: MAX_REQUEST_BYTES }));
    const said = this.ledger.take(body);
    if (fault?.kind === 'taken-then-cut') return this.#cut(seen, response);
    if (fault?.kind === 'half-an-answer') {
      const text = JSON.stringify(said.body);
      response.writeHead(said.status, { 'content-type': 'application/json', 'content-length': text.length });
      response.write(text.slice(0, text.length / 2), () => this.#cut(seen, response));
      return;
    }
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    end(said);
  }

  #cut(seen: SeenRequest, response: ServerResponse): void {
    seen.endedAt = Date.now();
    response.socket?.resetAndDestroy();
  }
}
