import type { ChildProcess } from 'node:child_process';
import { connect } from 'node:net';
import { type Fields, fieldsOf, isObject, parseJson, textOf } from '@interlude/protocol/fields';
import { visibleText } from '@interlude/protocol/redaction/redacted-text';
import { WebSocket } from 'ws';
import { AgentProcess, agentEnvironment, exitText, JsonLines } from '../../host/agent-process';

/** Result of a request: the response, or why there is none. */
export type RpcResult = { result: Fields } | { error: string; code: number | null; isGone: boolean };

/** A server that does not respond within this time counts as hanging. */
const RESPOND_WITHIN_MS = 30_000;
/** JSON-RPC "method not found": this version lacks the method. */
export const NO_SUCH_METHOD = -32_601;

/**
 * JSON-RPC client of one connection to an app-server.
 *
 * Ordering: `onMessage` sees every message, in both directions, before it takes effect.
 * Failure: every request settles: response, disconnect or timeout.
 */
export class AppServer {
  readonly #link: Transport;
  readonly #onMessage: (dir: 'in' | 'out', message: object) => void;
  readonly #waiting = new Map<number, { settle: (response: RpcResult) => void; threadId: string | null }>();
  readonly #waitMs: number;
  #next = 1;
  #isGone = false;

  constructor(link: Transport, onMessage: (dir: 'in' | 'out', message: object) => void, waitMs = RESPOND_WITHIN_MS) {
    this.#link = link;
    this.#onMessage = onMessage;
    this.#waitMs = waitMs;
    void link.ended.then(() => this.#ended());
  }

  get link(): Transport {
    return this.#link;
  }

  /** The thread of a pending request. */
  threadOf(id: unknown): string | null {
    return typeof id === 'number' ? (this.#waiting.get(id)?.threadId ?? null) : null;
  }

  async call(method: string, params: { threadId?: string; [name: string]: unknown }): Promise<RpcResult> {
    if (this.#isGone) return GONE;
    const id = this.#next++;
    const settled = new Promise<RpcResult>((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        resolve({ error: `Codex did not respond within ${this.#waitMs / 1_000} s`, code: null, isGone: false });
      }, this.#waitMs);
      const settle = (response: RpcResult) => {
        clearTimeout(timer);
        resolve(response);
      };
      this.#waiting.set(id, { settle, threadId: params.threadId ?? null });
    });
    this.#send({ id, method, params });
    return await settled;
  }

  notify(method: string): void {
    this.#send({ method });
  }

  /** Responds to a request of the server. @returns false if the connection is gone */
  respond(id: string | number, result: object): boolean {
    return this.#send({ id, result });
  }

  refuse(id: string | number, message: string): void {
    this.#send({ id, error: { code: NO_SUCH_METHOD, message } });
  }

  /** @returns true if the message is a response to this runner */
  settle(message: Fields): boolean {
    if (typeof message.method === 'string' || typeof message.id !== 'number') return false;
    const settle = this.#waiting.get(message.id)?.settle;
    this.#waiting.delete(message.id);
    if (message.error === undefined) settle?.({ result: fieldsOf(message.result) });
    else {
      const { message: text, code } = fieldsOf(message.error);
      settle?.({
        error: textOf(text) ?? 'no reason given',
        code: typeof code === 'number' ? code : null,
        isGone: false,
      });
    }
    return true;
  }

  #send(message: object): boolean {
    if (this.#isGone) return false;
    this.#onMessage('out', message);
    this.#link.send(message);
    return true;
  }

  #ended(): void {
    this.#isGone = true;
    for (const { settle } of this.#waiting.values()) settle(GONE);
    this.#waiting.clear();
  }
}

const GONE: RpcResult = { error: 'the connection to Codex broke', code: null, isGone: true };

/** Returns the id and method of a request from the server; null for other messages. */
export function requestOf(message: unknown): { id: string | number; method: string } | null {
  if (!isObject(message) || typeof message.method !== 'string') return null;
  const { id, method } = message;
  return typeof id === 'string' || typeof id === 'number' ? { id, method } : null;
}

/** Transport to an app-server: its socket, or the pipes of a child process. */
export interface Transport {
  send(message: object): void;
  /** Asks a child process to exit, or closes the connection. */
  close(): void;
  /** Kills the child or drops the connection. */
  kill(): void;
  readonly ended: Promise<TransportEnd>;
  /** PID of a child process. */
  readonly pid: number | null;
}

export interface TransportEnd {
  /** Readable reason: `exited with code 1: …`, `the connection broke (ECONNRESET)`. */
  reason: string;
  exitCode: number | null;
  signal: string | null;
  /** True if the server itself is gone, not just the connection. */
  isServerGone: boolean;
}

export interface TransportListener {
  onMessage(message: unknown): void;
  onTrouble(message: string): void;
  onStderr(text: string): void;
}

interface CodexProgram {
  command: string;
  cwd: string;
  env: Record<string, string | undefined>;
}

/**
 * Starts `codex app-server` as a child process with one message per line.
 *
 * Failure: unreadable lines are reported and skipped. Writing to an exited child does nothing; `ended` reports the
 * exit.
 */
export function spawnAppServer({ command, cwd, env }: CodexProgram, listener: TransportListener): Transport {
  const signal = new AbortController();
  const request = { command, args: ['app-server'], cwd, env: agentEnvironment(env), signal: signal.signal };
  const agent = new AgentProcess(request, (text) => listener.onStderr(text));
  const { child } = agent;
  const lines = new JsonLines({
    onValue: (value) => listener.onMessage(value),
    onUnreadable: (why, line) => listener.onTrouble(`Codex wrote a line that is ${why}: ${line}`),
  });
  child.stdout.on('data', (chunk: Buffer) => lines.write(chunk)).on('end', () => lines.end());
  child.stdin.on('error', () => undefined);
  child.stdout.on('error', () => undefined);
  return {
    pid: agent.pid,
    send: (message) => void (child.stdin.writable && child.stdin.write(`${JSON.stringify(message)}\n`)),
    close: () => child.stdin.end(),
    kill: () => killGroup(child),
    ended: agent.exited.then((exit) => ({
      // After a signal, the colored log of the server explains nothing.
      reason: visibleText(exitText(exit.signal === null ? exit : { ...exit, lastOutput: null })),
      exitCode: exit.exitCode,
      signal: exit.signal,
      isServerGone: true,
    })),
  };
}

/** npm installs a script that runs the server as a child, so the whole group is killed. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined && process.platform !== 'win32') process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

/** Far above the size of any message, even with images. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const OPEN_WITHIN_MS = 10_000;
/** A server or machine that sends no pong in this time counts as hanging. */
const PING_MS = 15_000;
/** Error codes of a missing server. */
const NO_SERVER = new Set(['ENOENT', 'ECONNREFUSED']);

/** @returns the reason why no connection is possible; null if a server listens */
export function probeSocket(path: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(null);
    });
    socket.once('error', (error) => resolve(reasonOf(error, path)));
  });
}

function reasonOf(error: NodeJS.ErrnoException, path: string): string {
  if (NO_SERVER.has(error.code ?? '')) return `no Codex listens on ${path}`;
  return `the connection to Codex broke (${error.code ?? error.message})`;
}

/**
 * Connects to the app-server of the operator's terminals over its Unix socket: WebSocket, one message per text frame.
 *
 * Failure: frames that are not JSON are reported and skipped; an oversized frame ends the connection.
 * @see `codex app-server --listen unix://`, @openai/codex 0.171.0
 */
export function connectSocket(path: string, listener: TransportListener): Transport {
  const socket = new WebSocket('ws://localhost/', {
    createConnection: () => connect(path),
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handshakeTimeout: OPEN_WITHIN_MS,
  });
  const waiting: string[] = [];
  let failure: NodeJS.ErrnoException | null = null;
  let isAlive = true;
  const ping = setInterval(() => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, PING_MS);
  const alive = () => {
    isAlive = true;
  };
  socket.on('pong', alive);
  socket.on('open', () => {
    for (const text of waiting.splice(0)) socket.send(text);
  });
  socket.on('message', (data) => {
    alive();
    const text = String(data);
    const message = parseJson(text);
    if (message !== null) listener.onMessage(message);
    else listener.onTrouble(`Codex sent a frame that is not JSON: ${text.slice(0, 200)}`);
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  const ended = new Promise<TransportEnd>((resolve) => {
    socket.on('close', (code) => {
      clearInterval(ping);
      const isServerGone = NO_SERVER.has(failure?.code ?? '');
      const reason = reasonOf(failure ?? new Error(isAlive ? String(code) : 'it does not respond'), path);
      resolve({ reason, exitCode: null, signal: null, isServerGone });
    });
  });
  return {
    pid: null,
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: () => socket.close(),
    kill: () => socket.terminate(),
    ended,
  };
}
