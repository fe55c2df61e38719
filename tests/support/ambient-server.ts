import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { ownPort } from './own-port.mjs';

/**
 * A server that speaks AG-UI as the runner of the Ambient platform does: camelCase but for the ids of texts, calls and
 * errors; `data:` only; a queue of events between runs, which whoever reads takes from it; tasks that can be listed and
 * stopped. What a run says, its test says.
 */
export interface PostedInput {
  threadId: string;
  runId: string;
  messages: { id: string; role: string; content?: unknown; toolCallId?: string; toolCalls?: unknown[] }[];
  resume?: { interruptId: string; status: string; payload?: unknown }[];
}

/** A run that was posted and whose stream is open. */
export class AmbientRun {
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

  /** The bytes as they are. */
  write(text: string): void {
    this.#response.write(text);
  }

  /** The stream ends, whatever was said. */
  end(): void {
    this.#response.end();
  }

  /** The connection breaks. */
  cut(): void {
    this.#response.destroy();
  }

  /** A whole run that says this. */
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
  /** Without it, a run waits for what its test says. */
  onRun: ((run: AmbientRun) => void) | null = null;
  /** Instead of a run: the status of the answer, and its body. */
  refusal: { status: number; body: string } | null = null;
  /** The answer to a run whose events come on the stream of events. */
  acceptance: { status: number; body: string; isHeld?: boolean } | null = null;
  /** Which of its streams of events it has. */
  streams: 'thread' | 'all' | 'none' = 'thread';
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
    ambient.#port = await ownPort();
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

  /** The run that was posted last. */
  get run(): AmbientRun | undefined {
    return this.runs.at(-1);
  }

  /** Between runs. What nobody listens to waits. */
  between(...events: object[]): void {
    this.write(events.map(frame).join(''));
  }

  write(text: string): void {
    // The newest listener takes it: two of them would each get a part.
    const listener = [...this.#listeners].at(-1);
    if (listener === undefined) this.#queue.push(text);
    else listener.write(text);
  }

  /** Answers the POST that is held. */
  release(): void {
    this.#answer?.();
    this.#answer = null;
  }

  /** The connections of those who listen break. */
  cutListeners(): void {
    for (const listener of this.#listeners) listener.destroy();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  /** There again, at the same address. */
  async comeBack(): Promise<void> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    await this.#listenAt();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').replace(/\?.*/, '');
    const body = await bodyOf(request);
    this.asked.push(`${request.method} ${path}`);
    const [, kind = '', id, verb] = path.split('/');
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

/** A text as Ambient's runner says it: its ids in snake_case. */
export function said(messageId: string, text: string, { threadId, runId }: { threadId: string; runId: string }) {
  const ids = { thread_id: threadId, run_id: runId };
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...ids },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text, ...ids },
    { type: 'TEXT_MESSAGE_END', messageId, ...ids },
  ];
}

/** The end of a task, as Ambient's runner says it. */
export function taskEnded(taskId: string, summary = 'done', status = 'completed') {
  const value = { task_id: taskId, status, summary, usage: null, output_file: `/home/agent/${taskId}.output` };
  return { type: 'CUSTOM', name: 'task:completed', value };
}

export function taskBegan(taskId: string, description: string) {
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
