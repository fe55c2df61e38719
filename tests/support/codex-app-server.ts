import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { tempDir } from './temp-dir';

/** A connected client. */
interface Client {
  send(message: object): void;
  /** Writes raw bytes. */
  write(text: string): void;
  drop(): void;
}

interface Thread {
  id: string;
  parentThreadId: string | null;
  status: object;
  history: Fields[];
  terminals: { itemId: string; processId: string; command: string }[];
  queue: { id: string; input: unknown; clientUserMessageId: string }[];
  openTurn: string | null;
  subscribers: Set<Client>;
}

/**
 * A scripted Codex app-server on the real wire. Thread history survives a restart, as on disk; in-memory state does
 * not.
 *
 * @see the recordings in tests/fixtures/recordings/codex
 */
export class CodexAppServer {
  readonly clients = new Set<Client>();
  readonly threads = new Map<string, Thread>();
  /** Received input texts and requests. */
  readonly heard: string[] = [];
  readonly requests: { method: string; params: Fields }[] = [];
  /** Responses to the server's own requests. */
  readonly answers: Fields[] = [];
  /** Unsupported methods, and methods it never answers. */
  readonly unknown = new Set<string>();
  readonly silent = new Set<string>();
  page = 1_000;
  readonly #waiting = new Map<number, object>();
  #next = 0;
  #nextRequestId = 0;

  /** Listens on a socket for any number of clients, like an operator's own server. */
  async listen(path?: string): Promise<{ path: string; stop(): Promise<void> }> {
    const at = path ?? join(await tempDir(), 'app-server.sock');
    const http = createHttpServer();
    const sockets = new WebSocketServer({ server: http });
    sockets.on('connection', (socket) => {
      const client: Client = {
        send: (message) => socket.send(JSON.stringify(message)),
        write: (text) => socket.send(text),
        drop: () => socket.terminate(),
      };
      this.#joined(client);
      socket.on('message', (data) => this.#received(client, JSON.parse(String(data)) as Fields));
      socket.on('close', () => this.#left(client));
    });
    http.listen(at);
    await once(http, 'listening');
    const stop = async () => {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise((done) => http.close(done));
      // After this, clients can't connect.
    };
    onTestFinished(async () => {
      if (http.listening) await stop();
    });
    return { path: at, stop };
  }

  /** Creates a program that a runner can start. @returns its path */
  async program(): Promise<string> {
    const folder = await tempDir();
    const path = join(folder, 'pipes.sock');
    const server = createServer((socket) => this.#piped(socket));
    server.listen(path);
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const command = join(folder, 'codex');
    const child = resolve('tests/support/codex-child.mjs');
    await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${child}' '${path}'\n`);
    await chmod(command, 0o755);
    return command;
  }

  /** The latest thread. */
  get thread(): Thread {
    const thread = [...this.threads.values()].at(-1);
    if (thread === undefined) throw new Error('no thread has started');
    return thread;
  }

  newThread(parentThreadId: string | null = null): Thread {
    const id = `thread-${++this.#next}`;
    const thread: Thread = {
      ...{ id, parentThreadId, status: { type: 'idle' }, history: [], terminals: [], queue: [], openTurn: null },
      subscribers: new Set(),
    };
    this.threads.set(id, thread);
    for (const client of this.clients)
      client.send({ method: 'thread/started', params: { thread: threadView(thread) } });
    return thread;
  }

  tell(thread: Thread, method: string, params: object): void {
    for (const client of thread.subscribers) client.send({ method, params: { threadId: thread.id, ...params } });
  }

  beginTurn(thread: Thread, rootTurnId?: string): string {
    const id = `turn-${++this.#next}`;
    thread.openTurn = id;
    this.#status(thread, { type: 'active', activeFlags: [] });
    thread.history.push({ type: 'turnStarted', turnId: id, startedAt: null });
    this.tell(thread, 'turn/started', { turn: { id, rootTurnId: rootTurnId ?? id } });
    return id;
  }

  /** A message that starts or steers a turn. */
  message(thread: Thread, text: string, clientId: string | null = null): void {
    this.item(thread, { type: 'userMessage', id: `item-${++this.#next}`, clientId, content: [{ type: 'text', text }] });
  }

  /** A complete item of the open turn, or of another. */
  item(thread: Thread, item: Fields, turnId = thread.openTurn): void {
    this.tell(thread, 'item/started', { turnId, item });
    this.completed(thread, item, turnId);
  }

  completed(thread: Thread, item: Fields, turnId = thread.openTurn): void {
    thread.history.push({ type: 'item', turnId, item });
    this.tell(thread, 'item/completed', { turnId, item });
  }

  says(thread: Thread, text: string): string {
    const id = `item-${++this.#next}`;
    this.item(thread, { type: 'agentMessage', id, text });
    return id;
  }

  /** Starts a command. @returns its item */
  runs(thread: Thread, command: string): Fields {
    const id = `call-${++this.#next}`;
    const item = { type: 'commandExecution', id, command, processId: `p-${id}`, status: 'inProgress' };
    thread.terminals.push({ itemId: id, processId: `p-${id}`, command });
    this.tell(thread, 'item/started', { turnId: thread.openTurn, item });
    return { ...item, turnId: thread.openTurn };
  }

  ends(thread: Thread, { turnId, ...item }: Fields, exitCode: number, output = ''): void {
    thread.terminals = thread.terminals.filter(({ itemId }) => itemId !== item.id);
    const status = exitCode === 0 ? 'completed' : 'failed';
    this.completed(thread, { ...item, status, exitCode, aggregatedOutput: output }, textOf(turnId));
  }

  endTurn(thread: Thread, status = 'completed', error: object | null = null): void {
    const id = thread.openTurn;
    if (id === null) return;
    thread.openTurn = null;
    thread.history.push({ type: 'turnCompleted', turnId: id, status, error });
    this.#status(thread, { type: 'idle' });
    this.tell(thread, 'turn/completed', { turn: { id, status, error } });
    // After an interrupt, it waits for `turn/start`.
    const [next] = status === 'completed' ? thread.queue.splice(0, 1) : [];
    if (next !== undefined) this.#start(thread, next.input, next.clientUserMessageId);
  }

  /** Asks all clients that follow the thread. @returns the request id */
  asks(thread: Thread, method: string, params: object): number {
    const id = this.#nextRequestId++;
    this.#status(thread, { type: 'active', activeFlags: ['waitingOnApproval'] });
    const request = { id, method, params: { threadId: thread.id, turnId: thread.openTurn, ...params } };
    this.#waiting.set(id, request);
    for (const client of thread.subscribers) client.send(request);
    return id;
  }

  /** Reports a request as answered, by any client. */
  resolved(thread: Thread, requestId: number): void {
    this.#waiting.delete(requestId);
    this.#status(thread, { type: 'active', activeFlags: [] });
    this.tell(thread, 'serverRequest/resolved', { requestId });
  }

  /** Kills the process and everything in it. */
  die(): void {
    for (const client of this.clients) client.drop();
    for (const thread of this.threads.values()) {
      Object.assign(thread, atRest());
    }
    this.#waiting.clear();
  }

  #piped(socket: Socket): void {
    const client: Client = {
      send: (message) => void socket.write(`${JSON.stringify(message)}\n`),
      write: (text) => void socket.write(text),
      drop: () => void socket.destroy(),
    };
    // A new process starts without the previous one's in-memory state.
    for (const thread of this.threads.values()) {
      thread.subscribers.clear();
      Object.assign(thread, atRest());
    }
    this.#joined(client);
    let rest = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#received(client, JSON.parse(line) as Fields);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => this.#left(client));
  }

  #joined(client: Client): void {
    this.clients.add(client);
  }

  #left(client: Client): void {
    this.clients.delete(client);
    for (const { subscribers } of this.threads.values()) subscribers.delete(client);
  }

  #received(client: Client, { id, method, params, ...message }: Fields): void {
    if (typeof method !== 'string') {
      this.answers.push({ id, ...message });
      const request = fieldsOf(this.#waiting.get(Number(id)));
      const thread = this.threads.get(String(fieldsOf(request.params).threadId));
      if (thread !== undefined) this.resolved(thread, Number(id));
      return;
    }
    this.requests.push({ method, params: fieldsOf(params) });
    if (id === undefined || this.silent.has(method)) return;
    const answer = this.unknown.has(method) ? noMethod(method) : this.#answer(client, method, fieldsOf(params));
    client.send({ id, ...answer });
    if (method === 'thread/resume' && 'result' in answer) this.#askAgain(client, String(fieldsOf(params).threadId));
  }

  #answer(client: Client, method: string, params: Fields): { result: object } | { error: object } {
    if (method === 'initialize') return { result: { userAgent: 'interlude/0.171.0 (played)', codexHome: '/nowhere' } };
    if (method === 'thread/loaded/list') return { result: { data: [...this.threads.keys()], nextCursor: null } };
    if (method === 'thread/start') {
      const thread = this.newThread();
      thread.subscribers.add(client);
      return { result: { thread: threadView(thread), model: 'played' } };
    }
    const thread = this.threads.get(String(params.threadId));
    if (thread === undefined) return { error: { code: -32_600, message: `no rollout found for ${params.threadId}` } };
    switch (method) {
      case 'thread/resume':
        thread.subscribers.add(client);
        return { result: { thread: threadView(thread), model: 'played' } };
      case 'thread/timeline/list': {
        const from = Number(params.cursor ?? 0);
        const to = from + this.page;
        const next = to < thread.history.length ? String(to) : null;
        return { result: { data: thread.history.slice(from, to), nextCursor: next } };
      }
      case 'thread/backgroundTerminals/list':
        return { result: { data: thread.terminals, nextCursor: null } };
      case 'thread/backgroundTerminals/terminate':
        return { result: {} };
      case 'thread/queue/list':
        return { result: { data: thread.queue, nextCursor: null } };
      case 'thread/queue/add':
        this.#note(params.input);
        thread.queue.push({
          id: `q-${++this.#next}`,
          input: params.input,
          clientUserMessageId: String(params.clientUserMessageId),
        });
        return { result: { queuedSubmission: { id: 'q' } } };
      case 'thread/queue/start': {
        const next = thread.queue.shift();
        if (next === undefined) return { error: { code: -32_600, message: 'nothing is queued' } };
        return { result: { turn: { id: this.#start(thread, next.input, next.clientUserMessageId) } } };
      }
      case 'turn/steer':
        this.#note(params.input);
        setImmediate(() => this.message(thread, inputText(params.input), textOf(params.clientUserMessageId)));
        return { result: { turnId: thread.openTurn } };
      case 'turn/interrupt':
        setImmediate(() => this.endTurn(thread, 'interrupted'));
        return { result: {} };
      case 'turn/start': {
        const contexts = Object.values(fieldsOf(params.additionalContext)).map(fieldsOf);
        if (contexts.some(({ name = 'a' }) => !/^[a-z][a-z0-9_]{0,63}$/.test(String(name)))) {
          return { error: { code: -32_600, message: 'additional context name must match [a-z][a-z0-9_]{0,63}' } };
        }
        this.#note(params.input);
        const id = this.#start(thread, params.input, textOf(params.clientUserMessageId));
        return { result: { turn: { id } } };
      }
      default:
        return noMethod(method);
    }
  }

  #start(thread: Thread, input: unknown, clientId: string | null): string {
    const id = this.beginTurn(thread);
    setImmediate(() => {
      if (thread.openTurn === id) this.message(thread, inputText(input), clientId);
    });
    return id;
  }

  #note(input: unknown): void {
    this.heard.push(inputText(input));
  }

  #askAgain(client: Client, threadId: string): void {
    for (const request of this.#waiting.values()) {
      if (fieldsOf(fieldsOf(request).params).threadId === threadId) client.send(request);
    }
  }

  #status(thread: Thread, status: object): void {
    thread.status = status;
    for (const client of this.clients) {
      client.send({ method: 'thread/status/changed', params: { threadId: thread.id, status } });
    }
  }
}

function atRest() {
  return { openTurn: null, terminals: [], queue: [], status: { type: 'idle' } };
}

function threadView({ id, parentThreadId, status }: Thread) {
  return { id, parentThreadId, status, ephemeral: false, cwd: '/work', turns: [] };
}

function inputText(input: unknown): string {
  return listOf(input)
    .map((part) => textOf(fieldsOf(part).text) ?? '')
    .join('\n');
}

function noMethod(method: string) {
  return { error: { code: -32_601, message: `there is no ${method}` } };
}
