import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { requestDigest } from '@interlude/protocol/request-digest';
import { AgUiSource, type AgUiSourceOptions } from '@interlude/runner/sources/agui/agui-source';
import { expect, onTestFinished } from 'vitest';
import { eventLines } from './recordings';
import { reservePort } from './reserve-port.mjs';
import { MemorySourceContext } from './source-contract';

export const SESSION = 's';

/** Starts a source against a server. Exposes its events as lines, and its log. */
export async function startAgUiSource(options: Partial<AgUiSourceOptions> = {}, ambient?: AmbientServer) {
  const server = ambient ?? (await AmbientServer.start());
  const around = new MemorySourceContext();
  const { sessionId = SESSION } = options;
  const source = new AgUiSource({
    context: around,
    url: server.url,
    sessionId,
    history: 'all',
    headers: {},
    random: () => 0,
    waits: { longestMs: 20, missingMs: 50, beginMs: 5_000, trailMs: 50 },
    ...options,
  });
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  let messages = 0;
  return {
    server,
    around,
    source,
    turn: () => around.openWork(sessionId).turn,
    tasks: () => around.openWork(sessionId).tasks.map(({ id }) => id),
    requests: () => around.openWork(sessionId).requests,
    trouble: () => source.sessions[0]?.trouble,
    lines: () => eventLines(around.told).trimEnd().split('\n'),
    /** Agent text by turn. */
    turns: () => turnsOf(around),
    say(text: string, again = false) {
      const messageId = again ? `m${messages}` : `m${++messages}`;
      return source.deliver(message(messageId, text, sessionId), again);
    },
    interrupt: (turnId?: string) =>
      source.interrupt({ ...about(sessionId, 'interrupt'), body: turnId === undefined ? {} : { turnId } }),
    stop: (taskId: string) => source.stop({ ...about(sessionId, 'task.stop'), body: { taskId } }),
    allow: (requestId: string, isAllowed = true) =>
      source.answer({
        ...about(sessionId, 'permission.decision'),
        body: { ...answered(around, sessionId, requestId), behavior: isAllowed ? 'allow' : 'deny' },
      }),
    reply: (requestId: string, answers: Record<string, string>) =>
      source.answer({
        ...about(sessionId, 'question.answer'),
        body: { ...answered(around, sessionId, requestId), answers },
      }),
  };
}

export const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });

export function message(messageId: string, text: string, sessionId = SESSION) {
  return {
    ...about(sessionId, 'message'),
    id: messageId,
    body: { messageId, text, from: { kind: 'person', id: 'operator' } },
  } as const;
}

function about<Type extends string>(sessionId: string, type: Type) {
  return { id: 'c', type, sessionId, createdAt: 1, expiresAt: 2 };
}

/** The fields with which the dashboard answers an open request. */
function answered(around: MemorySourceContext, sessionId: string, requestId: string) {
  const opened = around.events.findLast(
    ({ name, value }) => name === 'request:opened' && (value as { request_id: string }).request_id === requestId,
  );
  const { tool_name: tool = null, input = null } = (opened?.value ?? {}) as { tool_name?: string; input?: unknown };
  const openedPosition = '7';
  return {
    requestId,
    openedPosition,
    digest: requestDigest({ sessionId, requestId, tool, input, position: openedPosition }),
  };
}

interface SeenTurn {
  kind: string;
  trigger?: unknown;
  asked: string[];
  said: string[];
  end: string | null;
}

function turnsOf(around: MemorySourceContext): SeenTurn[] {
  const turns: SeenTurn[] = [];
  const outside: SeenTurn = { kind: 'none', asked: [], said: [], end: null };
  let open: SeenTurn | null = null;
  for (const { type, metadata, delta, outcome } of around.events) {
    const { turn, trigger, userMessageIds = [] } = metadata?.interlude ?? {};
    if (type === 'RUN_STARTED') {
      open = { kind: turn ?? '', ...(trigger ? { trigger } : {}), asked: userMessageIds, said: [], end: null };
      turns.push(open);
    } else if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') {
      if (open !== null) open.end = type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type;
      open = null;
    } else if (type === 'TEXT_MESSAGE_CONTENT') (open ?? outside).said.push(String(delta));
  }
  return outside.said.length > 0 ? [...turns, outside] : turns;
}

/**
 * Emulates AG-UI as spoken by the Ambient platform's runner: camelCase except for ids of texts, calls and errors;
 * `data:` lines only; a queue of between-run events consumed by the first reader; tasks that can be listed and stopped.
 * The test scripts each run.
 */
interface PostedInput {
  threadId: string;
  runId: string;
  messages: { id: string; role: string; content?: unknown; toolCallId?: string; toolCalls?: unknown[] }[];
  resume?: { interruptId: string; status: string; payload?: unknown }[];
}

/** A posted run with an open stream. */
class AmbientRun {
  readonly input: PostedInput;
  readonly #response: ServerResponse;

  constructor(input: PostedInput, response: ServerResponse) {
    this.input = input;
    this.#response = response;
  }

  get ids() {
    return { threadId: this.input.threadId, runId: this.input.runId };
  }

  say(...events: object[]): void {
    for (const event of events) this.#response.write(frame(event));
  }

  /** Writes raw bytes. */
  write(text: string): void {
    this.#response.write(text);
  }

  /** Ends the stream, even mid-run. */
  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  /** Sends a complete run with this text. */
  reply(text: string, messageId = `${this.input.runId}-m`): void {
    const { ids } = this;
    this.say({ type: 'RUN_STARTED', ...ids }, ...said(messageId, text, ids), { type: 'RUN_FINISHED', ...ids });
    this.end();
  }
}

export class AmbientServer {
  readonly inputs: PostedInput[] = [];
  readonly stopped: string[] = [];
  readonly asked: string[] = [];
  readonly runs: AmbientRun[] = [];
  /** Default script. Without it, each run waits for the test. */
  onRun: ((run: AmbientRun) => void) | null = null;
  /** Response status and body instead of a run. */
  refusal: { status: number; body: string } | null = null;
  /** Response to a run whose events arrive on the event stream. */
  acceptance: { status: number; body: string; isHeld?: boolean } | null = null;
  /** Event streams that this server supports. */
  streams: 'thread' | 'all' | 'none' = 'thread';
  /** Gateway response in place of an event stream. */
  gatewayStatus: { events: number; others?: number } | null = null;
  tasks: object[] | null = [];
  canInterrupt = true;
  interrupts = 0;
  mostListeners = 0;
  readonly #listeners = new Set<ServerResponse>();
  #answer: (() => void) | null = null;
  #queue: string[] = [];
  #server: Server;
  #port = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  static async start(): Promise<AmbientServer> {
    const ambient = new AmbientServer();
    ambient.#port = await reservePort();
    await ambient.#listenAt();
    onTestFinished(() => ambient.stop());
    return ambient;
  }

  async #listenAt(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** The latest run. */
  get run(): AmbientRun | undefined {
    return this.runs.at(-1);
  }

  /** Sends between-run events; queued while no listener is connected. */
  between(...events: object[]): void {
    this.write(events.map(frame).join(''));
  }

  write(text: string): void {
    // Only the newest listener receives it, because two would each get a part.
    const listener = [...this.#listeners].at(-1);
    if (listener === undefined) this.#queue.push(text);
    else listener.write(text);
  }

  /** Answers the held POST. */
  release(): void {
    this.#answer?.();
    this.#answer = null;
  }

  /** Breaks all listener connections. */
  cutListeners(): void {
    for (const listener of this.#listeners) listener.destroy();
  }

  /** Stops accepting connections and keeps existing ones. */
  drain(): void {
    this.#server.close();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Listens again at the same address. */
  async comeBack(): Promise<void> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    await this.#listenAt();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').replace(/\?.*/, '');
    const body = await bodyOf(request);
    this.asked.push(`${request.method} ${path}`);
    const [, kind = '', id, verb] = path.split('/');
    const gatewayStatus = kind === 'events' ? this.gatewayStatus?.events : this.gatewayStatus?.others;
    if (gatewayStatus !== undefined) return json(response, {}, gatewayStatus);
    if (request.method === 'POST' && path === '/') return this.#post(body, response);
    if (request.method === 'GET' && kind === 'events') return this.#listen(id, response);
    if (request.method === 'GET' && path === '/tasks' && this.tasks !== null)
      return json(response, { tasks: this.tasks });
    if (request.method === 'POST' && verb === 'stop' && id !== undefined && this.tasks !== null) {
      this.stopped.push(id);
      return json(response, { ok: true });
    }
    if (request.method === 'POST' && path === '/interrupt' && this.canInterrupt) {
      this.interrupts += 1;
      return json(response, { ok: true });
    }
    return json(response, { detail: 'Not Found' }, 404);
  }

  #post(body: string, response: ServerResponse): void {
    if (this.refusal !== null) {
      response.writeHead(this.refusal.status, { 'content-type': 'application/json' }).end(this.refusal.body);
      return;
    }
    const input = JSON.parse(body) as PostedInput;
    this.inputs.push(input);
    if (this.acceptance !== null) {
      const { status, body: answer, isHeld = false } = this.acceptance;
      this.#answer = () => response.writeHead(status, { 'content-type': 'application/json' }).end(answer);
      if (!isHeld) this.release();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    const run = new AmbientRun(input, response);
    this.runs.push(run);
    this.onRun?.(run);
  }

  #listen(thread: string | undefined, response: ServerResponse): void {
    if (this.streams === 'none' || (this.streams === 'all') !== (thread === undefined)) {
      json(response, { detail: 'Not Found' }, 404);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': heartbeat\n\n');
    this.#listeners.add(response);
    this.mostListeners = Math.max(this.mostListeners, this.#listeners.size);
    response.once('close', () => this.#listeners.delete(response));
    for (const text of this.#queue.splice(0)) response.write(text);
  }
}

/** A text message as sent by Ambient's runner, with snake_case ids. */
export function said(messageId: string, text: string, { threadId, runId }: { threadId: string; runId: string }) {
  const ids = { thread_id: threadId, run_id: runId };
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...ids },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text, ...ids },
    { type: 'TEXT_MESSAGE_END', messageId, ...ids },
  ];
}

/** A task end as sent by Ambient's runner. */
export function ambientTaskEnded(taskId: string, summary = 'done', status = 'completed') {
  const value = { task_id: taskId, status, summary, usage: null, output_file: `/home/agent/${taskId}.output` };
  return { type: 'CUSTOM', name: 'task:completed', value };
}

export function ambientTaskStarted(taskId: string, description: string) {
  const value = { task_id: taskId, description, task_type: 'local_bash', session_id: 'x', status: 'running' };
  return { type: 'CUSTOM', name: 'task:started', value };
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
