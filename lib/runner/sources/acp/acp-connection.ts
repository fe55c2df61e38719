import { setTimeout as pause } from 'node:timers/promises';
import type { RequestOpenedValue, RequestOption } from '@interlude/protocol/ag-ui';
import type { Fields } from '@interlude/protocol/fields';
import { type PermissionAnswer, permissionResult } from '../../adapters/acp/content';
import { type RpcError, rpcFrame, rpcKey } from '../../adapters/acp/rpc';
import type { WireFrame } from '../../adapters/wire';
import { boundFrame } from '../../adapters/writer/size-limits';
import { type AgentExit, AgentProcess, JsonLines, type SpawnRequest } from '../../host/agent-process';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf } from '../../host/source';

export interface AcpConnectionOptions {
  spawn: Omit<SpawnRequest, 'signal'>;
  /** Called with every frame before it takes effect. */
  onFrame(frame: WireFrame): void;
  /** Called with a request of the agent; `respond` or `refuse` answers it later. */
  onRequest(id: unknown, method: string, params: Fields): void;
  log(level: 'debug' | 'warn', message: string): void;
}

export type RpcResponse = { result: Fields; error: null } | { result: Fields; error: RpcError & { isGone?: true } };

const METHOD_NOT_FOUND = -32_601;

/** Unreadable lines logged per process. */
const MAX_WARNINGS = 20;
const QUOTED = 200;
/** After closing stdin: SIGTERM, then SIGKILL. */
const END_WITHIN_MS = { byInput: 2_000, bySignal: 3_000 };

/**
 * One process of an ACP agent: JSON-RPC on stdin and stdout, one frame per line.
 *
 * Ordering: one reader for the life of the process. Each frame is recorded before it takes effect, in both directions.
 * Failure: unreadable lines are recorded and skipped. When the process exits, open requests resolve with `isGone`, and
 * nothing more is written.
 */
export class AcpConnection {
  readonly exited: Promise<AgentExit>;
  readonly #options: AcpConnectionOptions;
  readonly #process: AgentProcess;
  readonly #waiting = new Map<string, (response: RpcResponse) => void>();
  #nextId = 1;
  #warnings = 0;
  #isGone = false;

  constructor(options: AcpConnectionOptions) {
    this.#options = options;
    const signal = new AbortController().signal;
    this.#process = new AgentProcess({ ...options.spawn, signal }, (text) => options.log('debug', text.trim()));
    const { stdin, stdout } = this.#process.child;
    const lines = new JsonLines({
      onValue: (value) => this.#received(value),
      onUnreadable: (why, line) => this.#unreadable(why, line),
    });
    stdout.on('data', (chunk: Buffer) => lines.write(chunk));
    // A closed pipe is reported as the exit of the process.
    stdin.on('error', (error) => options.log('debug', `the agent’s input: ${error.message}`));
    stdout.on('error', (error) => options.log('debug', `the agent’s output: ${error.message}`));
    this.exited = this.#process.exited.then((exit) => {
      lines.end();
      this.#isGone = true;
      this.#killGroup('SIGKILL');
      for (const answer of this.#waiting.values()) answer(GONE);
      this.#waiting.clear();
      return exit;
    });
  }

  get pid(): number | null {
    return this.#process.pid;
  }

  /** Writes immediately. Resolves with the response or when the process exits. */
  request(method: string, params: object): Promise<RpcResponse> {
    if (this.#isGone) return Promise.resolve(GONE);
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(rpcKey(id) ?? '', resolve);
      this.#send({ jsonrpc: '2.0', id, method, params });
    });
  }

  notify(method: string, params: object): void {
    this.#send({ jsonrpc: '2.0', method, params });
  }

  /** @returns false if the agent has exited */
  respond(id: unknown, result: object): boolean {
    return this.#send({ jsonrpc: '2.0', id, result });
  }

  refuse(id: unknown, method: string): void {
    this.#send({
      jsonrpc: '2.0',
      id,
      error: { code: METHOD_NOT_FOUND, message: `Interlude does not support ${method}` },
    });
  }

  /** Ends the process group: closes stdin, then signals. */
  async end(): Promise<void> {
    this.#process.child.stdin.end();
    if (await this.#exitsWithin(END_WITHIN_MS.byInput)) return;
    this.#killGroup('SIGTERM');
    if (await this.#exitsWithin(END_WITHIN_MS.bySignal)) return;
    this.#killGroup('SIGKILL');
    // a process of another user does not receive these signals
    await this.#exitsWithin(END_WITHIN_MS.bySignal);
  }

  #exitsWithin(ms: number): Promise<boolean> {
    return Promise.race([this.exited.then(() => true), pause(ms, false, { ref: false })]);
  }

  /** Child processes of the agent are in its group and must not outlive it. */
  #killGroup(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (pid === null) return;
    try {
      process.kill(process.platform === 'win32' ? pid : -pid, signal);
    } catch {
      // already gone
    }
  }

  #send(msg: Fields): boolean {
    const { stdin } = this.#process.child;
    if (this.#isGone || !stdin.writable) return false;
    this.#options.onFrame({ dir: 'out', msg });
    stdin.write(`${JSON.stringify(msg)}\n`);
    return true;
  }

  #received(msg: unknown): void {
    this.#options.onFrame({ dir: 'in', msg });
    const frame = rpcFrame(msg);
    if (frame.kind === 'request') {
      this.#options.onRequest((msg as Fields).id, frame.method, frame.params);
    } else if (frame.kind === 'answer') {
      const { key, result, error } = frame;
      const settle = this.#waiting.get(key);
      this.#waiting.delete(key);
      if (settle === undefined) this.#warn(`the agent responded to an unknown request: ${quoted(msg)}`);
      else settle(error === null ? { result, error } : { result, error });
    } else if (frame.kind === 'unreadable') this.#warn(`the agent sent invalid JSON-RPC: ${quoted(msg)}`);
  }

  #unreadable(why: string, line: string): void {
    this.#options.onFrame({ dir: 'in', msg: { unreadable: why, line } });
    this.#warn(`the agent wrote an unreadable line (${why}): ${line}`);
  }

  #warn(message: string): void {
    this.#warnings += 1;
    if (this.#warnings <= MAX_WARNINGS) this.#options.log('warn', message);
    if (this.#warnings === MAX_WARNINGS)
      this.#options.log('warn', 'further unreadable lines are recorded but not logged');
  }
}

/** Response to requests of an exited process. */
export const GONE: RpcResponse = { result: {}, error: { code: null, message: 'the agent has exited', isGone: true } };

function quoted(msg: unknown): string {
  return (JSON.stringify(boundFrame(msg)) ?? '').slice(0, QUOTED);
}

/**
 * Permission requests of an ACP agent, each with a time limit.
 *
 * Failure: each request is answered once: by a person, by an interrupt, or on timeout with the agent's own “reject
 * once”. Requests of an exited process can't be answered.
 * @see ACP v1, `session/request_permission`
 */
export class PermissionRequests {
  readonly #sessionId: string;
  readonly #answerWithinMs: number;
  readonly #requests = new PendingRequests();
  /** By JSON-RPC id: the connection to respond on and the timeout. */
  readonly #open = new Map<string, { connection: AcpConnection; id: unknown; timer: NodeJS.Timeout }>();

  constructor(sessionId: string, answerWithinMs: number) {
    this.#sessionId = sessionId;
    this.#answerWithinMs = answerWithinMs;
  }

  /** @param value the emitted request; null if it was not emitted and can't be answered */
  hold(connection: AcpConnection, id: unknown, value: RequestOpenedValue | null): void {
    if (this.#open.has(JSON.stringify(id))) return;
    if (value === null) {
      connection.respond(id, permissionResult({ kind: 'cancelled' }));
      return;
    }
    const { request_id: requestId, options } = value;
    const sessionId = this.#sessionId;
    const expire = () => {
      this.#requests.release(sessionId, requestId);
      this.#reply(id, { kind: 'expired' }, options);
    };
    this.#open.set(JSON.stringify(id), { connection, id, timer: setTimeout(expire, this.#answerWithinMs) });
    const deliver = (answer: RequestAnswer): string | null => {
      if (answer.kind === 'question' || (answer.kind === 'permission' && answer.isAllowed)) {
        return 'the agent offers no option to allow this; deny it, or answer in the agent’s own interface';
      }
      const isSent = this.#reply(id, answer.kind === 'option' ? answer : { kind: 'cancelled' });
      return isSent ? null : 'the agent has exited';
    };
    this.#requests.open(sessionId, value, deliver);
  }

  /** @returns the reason for a failure, or null */
  answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<string | null> {
    return this.#requests.answer(command);
  }

  /** Answers all requests of an interrupted turn as cancelled. @see ACP v1, Cancellation */
  cancelAll(): void {
    this.#requests.clear();
    for (const { id } of [...this.#open.values()]) this.#reply(id, { kind: 'cancelled' });
  }

  /** Forgets all requests, because the asking process has exited. */
  clear(): void {
    this.#requests.clear();
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #reply(id: unknown, answer: PermissionAnswer, options: readonly RequestOption[] = []): boolean {
    const key = JSON.stringify(id);
    const open = this.#open.get(key);
    if (open === undefined) return false;
    clearTimeout(open.timer);
    this.#open.delete(key);
    return open.connection.respond(id, permissionResult(answer, options));
  }
}
