import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { CUSTOM } from '@interlude/protocol/event-fields';

import { type Fields, fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { HEARTBEAT_MS, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { HEARTBEAT } from '@interlude/protocol/sse';
import { API_BASE } from '@interlude/protocol/version';
import { type EventsRequest, errorResponse, FakeEventLog, type FakeResponse } from './fake-event-log';

export type Fault =
  /** Cuts the connection; nothing is stored. */
  | { kind: 'cut' }
  /** Stores the records and cuts the connection before the response. */
  | { kind: 'cut-after-storing' }
  /** Stores the records and cuts the connection in the middle of the response. */
  | { kind: 'half-a-response' }
  /** Stores the records and delays the response. */
  | { kind: 'slow'; ms: number }
  /** Responds with an error and stores nothing. */
  | { kind: 'refuse'; status: number; code: string; retryAfter?: number };

/** A request to `POST /events`. */
export interface SeenRequest {
  at: number;
  bytes: number;
  producer: { id: string; epoch: number };
  records: Fields[];
  /** Null while it is in progress, and if the connection was cut. */
  status: number | null;
  /** Time of the response or of the cut. */
  endedAt: number | null;
}

function send(response: ServerResponse, { status, body }: FakeResponse, headers: Record<string, string> = {}): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
  response.end(JSON.stringify(body));
}

/**
 * A fake Interlude for one runner: misbehaves on demand, and otherwise stores what a correct server stores.
 *
 * Ordering: requests are handled in order of arrival. Commands are sent in the order they were queued, and every new
 * stream starts with the open ones.
 * Failure: `requests` lists every request, whatever fault was applied to it, so checks can assert on it.
 */
export class FakeInterlude {
  readonly log = new FakeEventLog();
  readonly requests: SeenRequest[] = [];
  readonly commands = new FakeCommands(this.log);
  /** Chooses the fault for each request to `POST /events`. */
  faultFor: (request: SeenRequest) => Fault | null = () => null;
  readonly #server: Server;
  readonly #token: string;
  readonly #sockets = new Set<Socket>();
  #isOffline = false;

  private constructor(token: string) {
    this.#token = token;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
    this.#server.on('connection', (socket) => {
      if (this.#isOffline) socket.destroy();
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

  /** Cuts every connection and refuses new ones, but keeps the port. */
  set isOffline(isOffline: boolean) {
    this.#isOffline = isOffline;
    if (isOffline) for (const socket of this.#sockets) socket.destroy();
  }

  /** Applies a fault while the work runs. */
  async during<Result>(faultFor: (request: SeenRequest) => Fault | null, work: () => Promise<Result>): Promise<Result> {
    this.faultFor = faultFor;
    try {
      return await work();
    } finally {
      this.faultFor = () => null;
    }
  }

  async close(): Promise<void> {
    this.commands.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.isOffline = true;
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
    if (path === '/healthz' || path === '/readyz') return send(response, { status: 200, body: { status: 'ok' } });
    if (request.headers.authorization !== `Bearer ${this.#token}`) {
      return send(response, errorResponse(401, 'unauthenticated'));
    }
    const route = `${request.method} ${path}`;
    const raw = Buffer.concat(chunks);
    if (route === 'POST /events') return await this.#events(raw, request.headers['content-encoding'], response);
    const [, commandId] = /^POST \/agents\/[^/]+\/commands\/([^/]+)\/ack$/.exec(route) ?? [];
    if (commandId !== undefined) {
      const result = this.commands.acknowledge(decodeURIComponent(commandId), fieldsOf(parseJson(`${raw}`)));
      return send(response, result);
    }
    if (/^GET \/agents\/[^/]+\/commands$/.test(route)) {
      return this.commands.open(searchParams, textOf(request.headers['last-event-id']), response);
    }
    if (/^GET \/agents\/[^/]+\/reply-obligations$/.test(route)) {
      return send(response, { status: 200, body: { position: '0', obligations: [] } });
    }
    send(response, errorResponse(404, 'not_found'));
  }

  async #events(raw: Buffer, encoding: string | undefined, response: ServerResponse): Promise<void> {
    const json = encoding === 'gzip' ? gunzipSync(raw) : raw;
    const body = fieldsOf(parseJson(`${json}`)) as unknown as EventsRequest;
    if (fieldsOf(body.producer).id === undefined || !Array.isArray(body.records)) {
      return send(response, errorResponse(400, 'malformed'));
    }
    const { producer, records } = body;
    const about = { at: Date.now(), bytes: json.length, producer, records };
    const seen: SeenRequest = { ...about, status: null, endedAt: null };
    this.requests.push(seen);
    this.log.inspect(body);
    const fault = records[0]?.kind === 'probe' ? null : this.faultFor(seen);
    const end = (result: FakeResponse, headers: Record<string, string> = {}) => {
      [seen.status, seen.endedAt] = [result.status, Date.now()];
      send(response, result, headers);
    };
    const cut = () => {
      seen.endedAt = Date.now();
      response.socket?.resetAndDestroy();
    };
    if (fault?.kind === 'cut') return cut();
    if (fault?.kind === 'refuse') {
      const { status, code, retryAfter } = fault;
      return end(errorResponse(status, code), retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) });
    }
    if (json.length > MAX_REQUEST_BYTES) return end(errorResponse(413, 'too_large', { maxBytes: MAX_REQUEST_BYTES }));
    const result = this.log.append(body);
    if (fault?.kind === 'cut-after-storing') return cut();
    if (fault?.kind === 'half-a-response') {
      const text = JSON.stringify(result.body);
      response.writeHead(result.status, { 'content-type': 'application/json', 'content-length': text.length });
      response.write(text.slice(0, text.length / 2), cut);
      return;
    }
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    end(result);
  }
}

export interface SeenAck {
  at: number;
  commandId: string;
  state: string | null;
  reason: string | null;
  runner: string | null;
}

export interface FakeCommand {
  id: string;
  type: string;
  sessionId: string | null;
  position: string;
  isOpen: boolean;
  body: Fields;
}

interface SeenStream {
  runner: string;
  startedAt: number;
  openedAt: number;
}

const COMMAND_TTL_MS = 600_000;

/** The commands for the runner, its streams and its acknowledgements. */
class FakeCommands {
  readonly acks: SeenAck[] = [];
  /** Every command stream so far, oldest first. */
  readonly streams: SeenStream[] = [];
  /** The status with which acknowledgements are refused. */
  refusesAcks: number | null = null;
  #fencedRunner: string | null = null;
  readonly #log: FakeEventLog;
  readonly #open = new Set<ServerResponse>();
  readonly #commands: FakeCommand[] = [];
  readonly #heartbeat: NodeJS.Timeout;
  #count = 0;
  #isMidFrame = false;

  constructor(log: FakeEventLog) {
    this.#log = log;
    this.#heartbeat = setInterval(() => this.#isMidFrame || this.write(HEARTBEAT), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  get isConnected(): boolean {
    return this.#open.size > 0;
  }

  /** Queues a command and sends it `times` times. */
  queue(type: string, sessionId: string | null, body: Fields, times = 1): FakeCommand {
    this.#count += 1;
    const id = type === 'message' ? String(body.messageId) : `command-${this.#count}`;
    const event = { type: 'CUSTOM', name: CUSTOM.commandQueued, value: { command_id: id, type } };
    const position = this.#log.emit(sessionId ?? '', event);
    const command = { id, type, sessionId, position, isOpen: true, body };
    this.#commands.push(command);
    for (let index = 0; index < times; index += 1) this.resend(command);
    return command;
  }

  /** Queues a message to the agent, after adding it to the session as the composer does. */
  queueMessage(sessionId: string, text: string, times = 1): FakeCommand {
    const messageId = `message-${this.#count + 1}`;
    const metadata = { interlude: { delivery: 'queued' as const } };
    this.#log.emit(sessionId, { type: 'TEXT_MESSAGE_START', messageId, role: 'user', metadata });
    this.#log.emit(sessionId, { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text });
    this.#log.emit(sessionId, { type: 'TEXT_MESSAGE_END', messageId });
    return this.queue('message', sessionId, { messageId, text, from: { kind: 'person', id: 'operator' } }, times);
  }

  resend(command: FakeCommand): void {
    this.write(commandFrame(command));
  }

  /** True if every open command was acknowledged since the newest stream opened. */
  get isAllAcknowledged(): boolean {
    const openedAt = this.streams.at(-1)?.openedAt ?? 0;
    const acked = new Set(this.acks.filter(({ at }) => at >= openedAt).map(({ commandId }) => commandId));
    return this.#commands.every(({ id, isOpen }) => !isOpen || acked.has(id));
  }

  /** Writes raw text to every open stream. */
  write(text: string | Uint8Array): void {
    for (const response of this.#open) response.write(text);
  }

  /** Writes a frame in pieces, `pauseMs` apart, with no heartbeat in between. */
  async writeInPieces(pieces: readonly Uint8Array[], pauseMs: number): Promise<void> {
    this.#isMidFrame = true;
    for (const piece of pieces) {
      this.write(piece);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    this.#isMidFrame = false;
  }

  endStreams(lastFrame = ''): void {
    for (const response of this.#open) response.end(lastFrame);
    this.#open.clear();
  }

  /** Fences the current runner, as if another one had connected. */
  fence(): void {
    this.#fencedRunner = this.streams.at(-1)?.runner ?? null;
    const data = { runnerId: 'another', startedAt: Date.now(), message: 'Another runner has taken over.' };
    this.endStreams(`event: fenced\ndata: ${JSON.stringify(data)}\n\n`);
  }

  acknowledge(commandId: string, { state, reason, runner }: Fields): FakeResponse {
    const ack = { commandId, state: textOf(state), reason: textOf(reason), runner: textOf(runner) };
    this.acks.push({ at: Date.now(), ...ack });
    if (this.refusesAcks !== null) return errorResponse(this.refusesAcks, 'unavailable');
    if (ack.runner !== null && ack.runner === this.#fencedRunner) return errorResponse(403, 'stale_epoch');
    const command = this.#commands.find(({ id }) => id === commandId);
    if (command === undefined) return errorResponse(404, 'not_found');
    if (ack.state === 'done' || ack.state === 'failed') command.isOpen = false;
    return { status: 200, body: { commandId, state: ack.state } };
  }

  /** Handles `GET /agents/:id/commands`. */
  open(query: URLSearchParams, lastEventId: string | null, response: ServerResponse): void {
    const runner = query.get('runner') ?? '';
    this.streams.push({ runner, startedAt: Number(query.get('startedAt') ?? 0), openedAt: Date.now() });
    if (runner === this.#fencedRunner && runner !== '') {
      send(response, errorResponse(403, 'stale_epoch'));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const after = Number(lastEventId ?? query.get('after') ?? 0);
    response.write(`event: hello\ndata: ${JSON.stringify({ resume: 'ok', position: String(after) })}\n\n`);
    for (const command of this.#commands) {
      if (command.isOpen && Number(command.position) > after) response.write(commandFrame(command));
    }
    response.write(`event: up-to-date\ndata: ${JSON.stringify({ position: String(after) })}\n\n`);
    this.#open.add(response);
    response.on('close', () => this.#open.delete(response));
  }

  close(): void {
    clearInterval(this.#heartbeat);
  }
}

function commandFrame({ id, type, sessionId, position, body }: FakeCommand): string {
  const now = Date.now();
  const data = { id, type, sessionId, createdAt: now, expiresAt: now + COMMAND_TTL_MS, body };
  return `id: ${position}\nevent: command\ndata: ${JSON.stringify(data)}\n\n`;
}
