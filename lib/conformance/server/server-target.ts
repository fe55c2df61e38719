import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, parseJson } from '@interlude/protocol/fields';
import { API_BASE } from '@interlude/protocol/version';
import { createParser } from 'eventsource-parser';
import {
  assertMatch,
  type Check,
  checksOf,
  type Group,
  type Row,
  RunAborted,
  type Timeout,
  type WaitOptions,
  waitFor,
} from '../check';

export interface Server {
  url: string;
  token: string;
}

export interface JsonResponse {
  status: number;
  headers: Headers;
  body: Fields;
  text: string;
  /** The status and the fields of the body, for assertions. */
  seen: Fields;
}

const REQUEST_TIMEOUT_MS = 30_000;

/**
 * The server under test, and the agents that the checks simulate. All ids carry a prefix unique to this run.
 *
 * Failure: `close` always ends the streams, ends and archives the simulated sessions and retires their agents.
 * Stored events stay, because no route deletes them.
 */
export class ServerTarget {
  readonly server: Server;
  readonly timeout: Timeout;
  readonly prefix = `conformance-${randomBytes(5).toString('hex')}`;
  readonly #agents: FakeAgent[] = [];
  readonly #streams = new AbortController();
  readonly #closed = new AbortController();

  constructor(server: Server, timeoutMs: number, signal: AbortSignal) {
    this.server = { ...server, url: server.url.replace(/\/+$/, '') };
    this.timeout = { timeoutMs, signal: AbortSignal.any([signal, this.#closed.signal]) };
    // Every open stream listens to these.
    for (const one of [this.#closed.signal, this.#streams.signal, this.timeout.signal]) setMaxListeners(0, one);
  }

  /** @throws RunAborted if no Interlude answers, or it refuses the token */
  async connect(): Promise<void> {
    const { url } = this.server;
    const { status, body } = await this.get('/sessions?limit=1').catch((error: Error) => {
      const cause = (error.cause as { code?: string } | undefined)?.code ?? error.message;
      throw new RunAborted(`${url} does not answer (${cause}). Start it, or name another with --url`);
    });
    if (status === 401) throw new RunAborted(`${url} refuses the token. Pass its owner’s with --token-file`);
    if (status !== 200 || typeof body.position !== 'string')
      throw new RunAborted(
        `${url} is not an Interlude server: GET /sessions responded ${status}. Name another with --url`,
      );
  }

  /** A simulated agent for one check. */
  agent(name: string): FakeAgent {
    const agent = new FakeAgent(this, `${this.prefix}-${name}`);
    this.#agents.push(agent);
    return agent;
  }

  async send(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<JsonResponse> {
    const signal = AbortSignal.any([this.timeout.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]);
    const url = `${this.server.url}${/^\/(healthz|readyz|sign-in)/.test(path) ? '' : API_BASE}${path}`;
    const request = () => abortableFetch(url, { redirect: 'manual', signal, ...init });
    // A kept connection may close just as it is used.
    const response = await request().catch((error) => (error instanceof TypeError ? request() : Promise.reject(error)));
    const { status, headers } = response;
    const text = await response.text();
    const body = fieldsOf(parseJson(text));
    return { status, headers, body, text, seen: { status, ...body } };
  }

  get authorized(): Record<string, string> {
    return { authorization: `Bearer ${this.server.token}` };
  }

  get(path: string): Promise<JsonResponse> {
    return this.send(path, { headers: this.authorized });
  }

  /** @throws CheckFailed unless the response is 200 */
  async read(path: string): Promise<Fields> {
    const { status, body } = await this.get(path);
    assertMatch(`GET ${path}`, { status }, { status: 200 }, 'Serve this read model.');
    return body;
  }

  post(path: string, body: unknown, method = 'POST'): Promise<JsonResponse> {
    const headers = { ...this.authorized, 'content-type': 'application/json' };
    return this.send(path, { method, headers, body: JSON.stringify(body) });
  }

  /** Sends a request. @throws CheckFailed unless the response matches */
  async expect(path: string, body: unknown, expected: Fields, method = 'POST'): Promise<Fields> {
    const response = await this.post(path, body, method);
    assertMatch(`${method} ${path}`, response.seen, expected, 'Respond as PROTOCOL.md says.');
    return response.body;
  }

  /** @throws Error with the response, if it is not a stream */
  stream(path: string, headers: Record<string, string> = {}): Promise<SseReader> {
    const signal = AbortSignal.any([this.timeout.signal, this.#streams.signal]);
    const url = `${this.server.url}${API_BASE}${path}`;
    return SseReader.open(url, { ...this.authorized, ...headers }, { ...this.timeout, signal });
  }

  waitFor<Found>(
    expected: string,
    find: () => Found | null | undefined | false | Promise<Found | null | undefined | false>,
    options?: WaitOptions,
  ): Promise<Found> {
    return waitFor(this.timeout, expected, find, options);
  }

  /** @returns ids of the sessions that could not be ended and archived */
  async close(): Promise<string[]> {
    this.#streams.abort();
    const failed = await Promise.all(this.#agents.map((agent) => this.#retire(agent)));
    this.#closed.abort();
    return failed.flat();
  }

  async #retire({ id, outbox }: FakeAgent): Promise<string[]> {
    const { body } = await this.get(`/sessions?agent=${encodeURIComponent(id)}`).catch(() => ({ body: {} as Fields }));
    const sessionIds = ((body.sessions as Fields[] | undefined) ?? []).map((session) => String(session.id));
    const failed = await Promise.all(
      sessionIds.map(async (sessionId, index) => {
        const event = custom('session:ended', { reason: 'the conformance check has ended', exitCode: 0 });
        const record = { kind: 'event', agentId: id, sessionId, occurredAt: Date.now(), event, seq: 1 };
        // A new producer, because the check may have left its own one with wrong sequence numbers.
        const producer = { id: `${outbox.id}/end/${index}`, epoch: Date.now() };
        const path = `/sessions/${encodeURIComponent(sessionId)}/arrangement`;
        const ended = await this.post('/events', { producer, records: [record] }).catch(() => null);
        const archived = await this.post(path, { archived: true }, 'PUT').catch(() => null);
        return ended?.status === 200 && archived?.status === 200 ? [] : [sessionId];
      }),
    );
    await this.post(`/agents/${encodeURIComponent(id)}/retirement`, { retired: true }, 'PUT').catch(() => null);
    return failed.flat();
  }
}

interface CheckContext {
  server: ServerTarget;
  /** A simulated agent for this check alone. */
  agent: FakeAgent;
}

/** @see checksOf */
export function serverChecks(
  group: Group,
  why: string,
  rows: Record<string, Row<CheckContext>>,
): Check<ServerTarget>[] {
  return checksOf(group, why, rows).map((check, index) => ({
    ...check,
    run: (server) => {
      const name = `${group.replaceAll(' ', '-')}-${index + 1}`;
      return check.run({
        server,
        get agent() {
          return server.agent(name);
        },
      });
    },
  }));
}

export interface SseFrame {
  event: string;
  id: string | null;
  data: Fields;
}

/** Collects the frames of a stream of server-sent events. */
export class SseReader {
  readonly frames: SseFrame[] = [];
  heartbeats = 0;
  readonly #abort: AbortController;
  readonly #timeout: Timeout;

  private constructor(body: ReadableStream<Uint8Array>, abort: AbortController, timeout: Timeout) {
    this.#abort = abort;
    this.#timeout = timeout;
    void this.#read(body);
  }

  static async open(url: string, headers: Record<string, string>, timeout: Timeout): Promise<SseReader> {
    const abort = new AbortController();
    timeout.signal.addEventListener('abort', () => abort.abort());
    const response = await abortableFetch(url, { headers, signal: abort.signal });
    if (!response.ok || response.body === null) {
      throw new Error(`${new URL(url).pathname} responded ${response.status}: ${await response.text()}`);
    }
    return new SseReader(response.body, abort, timeout);
  }

  named(event: string): SseFrame[] {
    return this.frames.filter((frame) => frame.event === event);
  }

  /** Waits for the first frame of this name, or the first that `matches`. */
  frame(event: string, options: WaitOptions & { matches?: (frame: SseFrame) => boolean } = {}): Promise<SseFrame> {
    const { matches = (frame: SseFrame) => frame.event === event, ...wait } = options;
    const seen = () => this.frames.map((frame) => `${frame.event} ${frame.id ?? ''}`.trim()).slice(-12);
    return waitFor(this.#timeout, `the frame ${event}`, () => this.frames.find(matches), { seen, ...wait });
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const parser = createParser({
      onEvent: ({ event = 'message', id = null, data }) =>
        this.frames.push({ event, id: id ?? null, data: fieldsOf(parseJson(data)) }),
      onComment: () => {
        this.heartbeats += 1;
      },
    });
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
        parser.feed(decoder.decode(chunk, { stream: true }));
      }
    } catch {
      // The connection broke or was closed; the frames received before it count.
    }
  }
}

/** A record as a runner sends it, without its `seq`. */
export type FakeRecord = Fields & { kind: string };

/** A producer that numbers its records, rightly or wrongly. */
export class FakeOutbox {
  readonly id: string;
  epoch = Date.now();
  next = 1;
  readonly #target: ServerTarget;

  constructor(target: ServerTarget, id: string) {
    this.#target = target;
    this.id = id;
  }

  /** Numbers records after the last `seq`. */
  numbered(records: readonly FakeRecord[]): Fields[] {
    return records.map((record) => ({ seq: this.next++, ...record }));
  }

  /** Sends records without renumbering them. */
  async post(records: readonly Fields[], epoch = this.epoch): Promise<JsonResponse> {
    return await this.#target.post('/events', { producer: { id: this.id, epoch }, records });
  }

  /** Numbers and sends records. @throws CheckFailed unless all are acknowledged */
  async send(...records: FakeRecord[]): Promise<Fields> {
    const { seen, body } = await this.post(this.numbered(records));
    assertMatch('the response', seen, { status: 200, ackedSeq: this.next - 1 }, 'Accept consecutive records.');
    return body;
  }
}

/** An agent with one session, simulated over HTTP. */
export class FakeAgent {
  readonly id: string;
  readonly sessionId: string;
  readonly outbox: FakeOutbox;
  readonly runner: { id: string; startedAt: number };
  /** The path of its session. */
  readonly path: string;
  readonly #target: ServerTarget;

  constructor(target: ServerTarget, id: string) {
    this.#target = target;
    this.id = id;
    this.sessionId = `${id}/session`;
    this.path = `/sessions/${encodeURIComponent(this.sessionId)}`;
    this.outbox = new FakeOutbox(target, `${id}/outbox`);
    this.runner = { id: `${id}/runner`, startedAt: Date.now() };
  }

  event(event: AgUiEvent, sessionId = this.sessionId): FakeRecord {
    return { kind: 'event', agentId: this.id, sessionId, occurredAt: Date.now(), event };
  }

  status(status: Fields): FakeRecord {
    const about = { agentId: this.id, sessionId: this.sessionId, occurredAt: Date.now() };
    return { kind: 'status', ...about, status: { kind: 'conformance', ...status } };
  }

  log(message: string, level = 'info'): FakeRecord {
    return { kind: 'log', agentId: this.id, occurredAt: Date.now(), log: { level, component: 'conformance', message } };
  }

  /** Sends events of its session. */
  async emit(...events: AgUiEvent[]): Promise<Fields> {
    return await this.outbox.send(...events.map((event) => this.event(event)));
  }

  /** Opens the command stream of its runner. */
  async commands({ id, startedAt } = this.runner): Promise<SseReader> {
    const query = new URLSearchParams({ runner: id, startedAt: String(startedAt) });
    return await this.#target.stream(`/agents/${encodeURIComponent(this.id)}/commands?${query}`);
  }

  async acknowledge(commandId: string, state: string, more: Fields = {}): Promise<JsonResponse> {
    const path = `/agents/${encodeURIComponent(this.id)}/commands/${encodeURIComponent(commandId)}/ack`;
    return await this.#target.post(path, { state, runner: this.runner.id, startedAt: this.runner.startedAt, ...more });
  }

  async turns(): Promise<Fields[]> {
    return ((await this.#target.read(`${this.path}/transcript`)).turns as Fields[] | undefined) ?? [];
  }

  async session(): Promise<Fields> {
    return fieldsOf((await this.#target.read(this.path)).session);
  }

  /** A stream of its session. @param query for example `&after=0` */
  async stream(query = '', headers?: Record<string, string>): Promise<SseReader> {
    return await this.#target.stream(
      `/stream?topic=${encodeURIComponent(`session:${this.sessionId}`)}${query}`,
      headers,
    );
  }
}

export const started = (runId: string, interlude: Fields = { turn: 'user' }): AgUiEvent => ({
  type: 'RUN_STARTED',
  threadId: 'conformance',
  runId,
  metadata: { interlude },
});

export const finished = (runId: string, interlude: Fields = {}, more: Fields = {}): AgUiEvent => ({
  type: 'RUN_FINISHED',
  threadId: 'conformance',
  runId,
  metadata: { interlude },
  ...more,
});

export const text = (messageId: string, delta: string, role = 'assistant'): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId },
];

export const custom = (name: string, value: Fields = {}): AgUiEvent => ({ type: 'CUSTOM', name, value });
export const notice = (text: string): AgUiEvent => custom('interlude:notice', { text });

/** The items of a turn, each as its kind and text: `message hello`. */
export function itemsOf(turn: Fields | undefined): string[] {
  return ((turn?.items as Fields[] | undefined) ?? []).map(({ kind, text, phase, title, id, name }) =>
    [kind, text ?? phase ?? title ?? name ?? id].join(' '),
  );
}
