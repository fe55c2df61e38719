import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { RequestOption } from '@interlude/protocol/ag-ui';
import { requestDigest } from '@interlude/protocol/request-digest';
import { AgentApiSource, type AgentApiSourceOptions } from '@interlude/runner/sources/agentapi/agentapi-source';
import { expect, onTestFinished } from 'vitest';
import { eventLines } from './recordings';
import { reservePort } from './reserve-port.mjs';
import { MemorySourceContext } from './source-contract';

/**
 * Emulates coder/agentapi 0.12.1: messages without stable ids, no heartbeat, a full replay on each connection, a single
 * status word, and a last agent message that is rewritten as a whole. The test scripts the agent's messages and screen.
 */
export class AgentApiEmulator {
  /** Typed text and raw keys. */
  readonly typed: string[] = [];
  readonly keys: string[] = [];
  readonly asked: string[] = [];
  /** Uploads by assigned path. */
  readonly uploaded = new Map<string, Uint8Array>();
  takesFiles = true;
  status: 'running' | 'stable' = 'running';
  transport: 'pty' | 'acp' = 'pty';
  hasScreen = true;
  hasEvents = true;
  allowsHost = true;
  onMessage: ((content: string) => void) | null = null;
  onKeys: ((keys: string) => void) | null = null;
  #messages: { id: number; role: string; content: string; time: string }[] = [];
  #errors: object[] = [];
  #screen = '';
  #clock = Date.parse('2026-01-01T00:00:00Z');
  #held: (() => void)[] = [];
  #isLocked = false;
  readonly #listeners = new Map<ServerResponse, 'events' | 'screen'>();
  #server: Server;
  #port = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.startProcess();
  }

  static async start(): Promise<AgentApiEmulator> {
    const emulator = new AgentApiEmulator();
    emulator.#port = await reservePort();
    await emulator.listen();
    onTestFinished(() => emulator.stop());
    return emulator;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get listeners(): number {
    return [...this.#listeners.values()].filter((what) => what === 'events').length;
  }

  async listen(): Promise<void> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    for (const release of this.#held.splice(0)) release();
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Simulates a restart: message ids start over. */
  startProcess(): void {
    this.#messages = [{ id: 0, role: 'agent', content: '', time: this.#time() }];
    this.status = 'running';
    this.cut();
  }

  /** Closes all connections without a final event. */
  cut(): void {
    for (const listener of this.#listeners.keys()) listener.end();
    this.#listeners.clear();
  }

  /** Replaces the agent's last message. */
  says(content: string): void {
    this.running();
    const last = this.#messages.at(-1);
    if (last?.role === 'agent') Object.assign(last, { content, time: this.#time() });
    else this.#messages.push({ id: this.#messages.length, role: 'agent', content, time: this.#time() });
    this.#broadcastMessage(this.#messages.at(-1));
  }

  shows(screen: string): void {
    this.running();
    this.#screen = screen;
    this.#broadcast('screen', 'screen', { screen });
  }

  /** Changes the screen without notifying the streams. */
  screenNow(screen: string): void {
    this.#screen = screen;
    const last = this.#messages.at(-1);
    if (last?.role === 'agent') last.content = screen;
    if (this.hasScreen)
      for (const [listener, what] of this.#listeners)
        if (what === 'screen') listener.write(frame('screen', { screen }));
  }

  running(): void {
    this.#turn('running');
  }

  still(): void {
    this.#turn('stable');
  }

  /** A complete reply. */
  replies(content: string): void {
    this.says(content);
    this.still();
  }

  fails(message: string): void {
    const error = { message, level: 'error', time: this.#time() };
    this.#errors.push(error);
    this.#broadcast('events', 'agent_error', error);
  }

  /** Writes raw bytes. */
  write(text: string): void {
    for (const [listener, what] of this.#listeners) if (what === 'events') listener.write(text);
  }

  /** With `transport: acp`: ends the turn and releases whatever waits for the lock. */
  unlock(): void {
    this.#isLocked = false;
    for (const release of this.#held.splice(0)) release();
  }

  #turn(status: 'running' | 'stable'): void {
    if (this.status === status) return;
    this.status = status;
    this.#broadcast('events', 'status_change', { status, agent_type: 'claude' });
  }

  #time(): string {
    this.#clock += 25;
    return new Date(this.#clock).toISOString();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').replace(/\?.*/, '');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.asked.push(`${request.method} ${path}`);
    if (!this.allowsHost) return problem(response, 400, 'Invalid host header. Allowed hosts: localhost');
    if (path === '/events' && this.hasEvents) return this.#listen(response, 'events');
    if (path === '/internal/screen' && this.hasScreen) return this.#listen(response, 'screen');
    if (path === '/message' && request.method === 'POST') {
      return this.#post(JSON.parse(Buffer.concat(chunks).toString('utf8')), response);
    }
    if (path === '/upload' && this.takesFiles && request.method === 'POST') {
      const form = await new Response(Buffer.concat(chunks), { headers: headersOf(request) }).formData();
      const file = form.get('file') as File;
      this.uploaded.set(`/remote/${file.name}`, new Uint8Array(await file.arrayBuffer()));
      return json(response, { ok: true, filePath: `/remote/${file.name}` });
    }
    await this.#lock();
    if (path === '/status')
      return json(response, { status: this.status, agent_type: 'claude', transport: this.transport });
    if (path === '/messages') return json(response, { messages: this.#messages });
    return problem(response, 404, 'Not Found');
  }

  async #post({ content, type }: { content: string; type: string }, response: ServerResponse): Promise<void> {
    if (type === 'raw') {
      this.keys.push(content);
      this.onKeys?.(content);
      return json(response, { ok: true });
    }
    await this.#lock();
    if (this.status !== 'stable')
      return cannot(response, 'message can only be sent when the agent is waiting for user input');
    if (content !== content.trim())
      return cannot(response, 'message must be trimmed of leading and trailing whitespace');
    if (content === '') return cannot(response, 'message must not be empty');
    this.typed.push(content);
    this.#messages.push({ id: this.#messages.length, role: 'user', content, time: this.#time() });
    this.#broadcastMessage(this.#messages.at(-1));
    this.running();
    this.#isLocked = this.transport === 'acp';
    this.onMessage?.(content);
    await this.#lock();
    json(response, { ok: true });
  }

  async #lock(): Promise<void> {
    if (this.#isLocked) await new Promise<void>((resolve) => this.#held.push(resolve));
  }

  #listen(response: ServerResponse, what: 'events' | 'screen'): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    this.#listeners.set(response, what);
    response.once('close', () => this.#listeners.delete(response));
    if (what === 'screen') {
      response.write(frame('screen', { screen: this.#screen }));
      return;
    }
    for (const message of this.#messages) response.write(frame('message_update', updateOf(message)));
    response.write(frame('status_change', { status: this.status, agent_type: 'claude' }));
    for (const error of this.#errors) response.write(frame('agent_error', error));
  }

  #broadcastMessage(message: { id: number; role: string; content: string; time: string } | undefined): void {
    if (message !== undefined) this.#broadcast('events', 'message_update', updateOf(message));
  }

  #broadcast(what: 'events' | 'screen', event: string, data: object): void {
    for (const [listener, of] of this.#listeners) if (of === what) listener.write(frame(event, data));
  }
}

/** Renders a terminal menu with arrow selection, as Claude Code draws it. */
export function menu(
  emulator: AgentApiEmulator,
  question: string,
  options: string[],
  onChosen: (index: number) => void,
) {
  let at = 0;
  const draw = () =>
    emulator.shows(
      [
        `│ ${question}`,
        '│',
        ...options.map((option, index) => `│ ${index === at ? '❯' : ' '} ${index + 1}. ${option}`),
        '',
      ].join('\n'),
    );
  emulator.onKeys = (keys) => {
    if (keys === '\x1b[B') at = Math.min(at + 1, options.length - 1);
    else if (keys === '\x1b[A') at = Math.max(at - 1, 0);
    else if (keys === '\r') return onChosen(at);
    draw();
  };
  draw();
}

function updateOf({ id, role, content, time }: { id: number; role: string; content: string; time: string }) {
  return { id, role, message: content, time };
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function cannot(response: ServerResponse, message: string): void {
  problem(response, 500, 'failed to send message', [{ message }]);
}

function problem(response: ServerResponse, status: number, detail: string, errors?: object[]): void {
  response.writeHead(status, { 'content-type': 'application/problem+json' });
  response.end(JSON.stringify({ title: 'Error', status, detail, ...(errors ? { errors } : {}) }));
}

function headersOf({ headers }: IncomingMessage): HeadersInit {
  return { 'content-type': headers['content-type'] ?? '' };
}

const SESSION = 's';
export const QUICK = { longestMs: 20, pollMs: 60_000, brokenPollMs: 20, settleMs: 60 };

/** Starts a source against an emulated AgentAPI, with helpers for user actions. */
export async function startAgentApiSource(
  options: Partial<AgentApiSourceOptions> = {},
  emulator?: AgentApiEmulator,
  around = new MemorySourceContext(),
) {
  const server = emulator ?? (await AgentApiEmulator.start());
  const source = new AgentApiSource({
    ...{ context: around, url: server.url, sessionId: SESSION, headers: {}, random: () => 0, waits: QUICK },
    ...options,
  });
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  let messages = 0;
  const opened = () => around.events.findLast(({ name }) => name === 'request:opened')?.value as Opened | undefined;
  return {
    server,
    around,
    source,
    facts: () => source.sessions[0],
    turn: () => around.openWork(SESSION).turn,
    requests: () => around.openWork(SESSION).requests,
    lines: () => eventLines(around.told).trimEnd().split('\n'),
    turns: () => turnsOf(around),
    opened,
    say: (text: string) => source.deliver(messageTo(`m${++messages}`, text)),
    interrupt: (turnId?: string) =>
      source.interrupt({ ...about('interrupt'), body: turnId === undefined ? {} : { turnId } }),
    choose(optionId: string) {
      const { request_id: requestId = '', input, options: offered = [] } = opened() ?? {};
      const position = '7';
      const digest = requestDigest({ sessionId: SESSION, requestId, tool: null, input, options: offered, position });
      const behavior = offered.find(({ id }) => id === optionId)?.kind ?? 'allow';
      const body = { requestId, openedPosition: position, digest, behavior, optionId };
      return source.answer({ ...about('permission.decision'), body });
    },
  };
}

interface Opened {
  request_id?: string;
  title?: string;
  input?: unknown;
  options?: RequestOption[];
}

export const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });

export function messageTo(messageId: string, text: string) {
  return {
    ...about('message'),
    id: messageId,
    body: { messageId, text, from: { kind: 'person', id: 'operator' } },
  } as const;
}

function about<Type extends string>(type: Type) {
  return { id: 'c', type, sessionId: SESSION, createdAt: 1, expiresAt: 2 };
}

/** Each turn's text as a reader sees it. Items outside any turn have the kind `none`. */
function turnsOf(around: MemorySourceContext) {
  const turns: { kind: string; asked: string[]; said: string; end: string | null }[] = [];
  const outside = { kind: 'none', asked: [], said: '', end: null };
  let open: (typeof turns)[number] | null = null;
  for (const { type, metadata, delta, outcome } of around.events) {
    const { turn = '', userMessageIds = [], whole } = metadata?.interlude ?? {};
    if (type === 'RUN_STARTED') {
      open = { kind: turn, asked: userMessageIds, said: '', end: null };
      turns.push(open);
    } else if (type === 'RUN_ERROR' || type === 'RUN_FINISHED') {
      if (open !== null) open.end = type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type;
      open = null;
    } else if (type === 'TEXT_MESSAGE_CONTENT') {
      const home = open ?? outside;
      home.said = whole === true ? String(delta) : home.said + delta;
    }
  }
  return outside.said === '' ? turns : [...turns, outside];
}
