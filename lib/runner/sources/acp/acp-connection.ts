import { setTimeout as pause } from 'node:timers/promises';
import type { Fields } from '@interlude/protocol/fields';
import { type RpcError, rpcFrame, rpcKey } from '../../adapters/acp/rpc';
import type { WireFrame } from '../../adapters/wire';
import { withinReason } from '../../adapters/within-reason';
import { type AgentExit, AgentProcess, JsonLines, type SpawnRequest } from '../../host/agent-process';

/**
 * One process of an ACP agent: JSON-RPC, a frame a line, on its stdin and stdout.
 *
 * Ordering: one reader for the life of the process; each frame is told before anything follows from it, in both
 * directions.
 * Failure: a line that can't be read is told and passed over. When the process goes, what was asked of it is answered as
 * `isGone`, and nothing is written to it any more.
 */
export interface AcpConnectionOptions {
  spawn: Omit<SpawnRequest, 'signal'>;
  /** Every frame, before it is acted on. */
  onFrame(frame: WireFrame): void;
  /** The agent asks for something; answered with `respond` or `refuse`, now or later. */
  onRequest(id: unknown, method: string, params: Fields): void;
  log(level: 'debug' | 'warn', message: string): void;
}

export type RpcAnswer = { result: Fields; error: null } | { result: Fields; error: RpcError & { isGone?: true } };

export const METHOD_NOT_FOUND = -32_601;

/** Lines of one process that are complained about; the others are only kept. */
const MOST_COMPLAINTS = 20;
const QUOTED = 200;
/** Of an agent whose input has ended; then it is told to end, then it is ended. */
const END_WITHIN_MS = { byInput: 2_000, bySignal: 3_000 };

export class AcpConnection {
  readonly exited: Promise<AgentExit>;
  readonly #options: AcpConnectionOptions;
  readonly #process: AgentProcess;
  readonly #waiting = new Map<string, (answer: RpcAnswer) => void>();
  #nextId = 1;
  #complaints = 0;
  #isGone = false;

  constructor(options: AcpConnectionOptions) {
    this.#options = options;
    const signal = new AbortController().signal;
    this.#process = new AgentProcess({ ...options.spawn, signal }, (text) => options.log('debug', text.trim()));
    const { stdin, stdout } = this.#process.child;
    const lines = new JsonLines({
      onValue: (value) => this.#heard(value),
      onUnreadable: (why, line) => this.#unreadable(why, line),
    });
    stdout.on('data', (chunk: Buffer) => lines.write(chunk));
    // A reader that is gone is seen as the end of the process.
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

  /** Resolves once it is answered, or the process is gone. Written at once. */
  request(method: string, params: object): Promise<RpcAnswer> {
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

  /** @returns false if the agent is gone, and nothing was told */
  respond(id: unknown, result: object): boolean {
    return this.#send({ jsonrpc: '2.0', id, result });
  }

  refuse(id: unknown, method: string): void {
    this.#send({ jsonrpc: '2.0', id, error: { code: METHOD_NOT_FOUND, message: `Interlude has no ${method}` } });
  }

  /** Ends the process and what it runs: first its input, then by signals. */
  async end(): Promise<void> {
    this.#process.child.stdin.end();
    if (await this.#goesWithin(END_WITHIN_MS.byInput)) return;
    this.#killGroup('SIGTERM');
    if (await this.#goesWithin(END_WITHIN_MS.bySignal)) return;
    this.#killGroup('SIGKILL');
    // a process of another user hears none of these
    await this.#goesWithin(END_WITHIN_MS.bySignal);
  }

  #goesWithin(ms: number): Promise<boolean> {
    return Promise.race([this.exited.then(() => true), pause(ms, false, { ref: false })]);
  }

  /** Helpers that an agent has started are in its group, and work on no one's session once it is gone. */
  #killGroup(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (pid === null) return;
    try {
      process.kill(process.platform === 'win32' ? pid : -pid, signal);
    } catch {
      // gone already
    }
  }

  #send(msg: Fields): boolean {
    const { stdin } = this.#process.child;
    if (this.#isGone || !stdin.writable) return false;
    this.#options.onFrame({ dir: 'out', msg });
    stdin.write(`${JSON.stringify(msg)}\n`);
    return true;
  }

  #heard(msg: unknown): void {
    this.#options.onFrame({ dir: 'in', msg });
    const frame = rpcFrame(msg);
    if (frame.kind === 'request') {
      this.#options.onRequest((msg as Fields).id, frame.method, frame.params);
    } else if (frame.kind === 'answer') {
      const { key, result, error } = frame;
      const answer = this.#waiting.get(key);
      this.#waiting.delete(key);
      if (answer === undefined) this.#complain(`the agent answered a request that was not asked: ${quoted(msg)}`);
      else answer(error === null ? { result, error } : { result, error });
    } else if (frame.kind === 'unreadable') this.#complain(`the agent sent what is no JSON-RPC: ${quoted(msg)}`);
  }

  #unreadable(why: string, line: string): void {
    this.#options.onFrame({ dir: 'in', msg: { unreadable: why, line } });
    this.#complain(`the agent wrote a line that can’t be read (${why}): ${line}`);
  }

  #complain(message: string): void {
    this.#complaints += 1;
    if (this.#complaints <= MOST_COMPLAINTS) this.#options.log('warn', message);
    if (this.#complaints === MOST_COMPLAINTS)
      this.#options.log('warn', 'further lines like these are kept, and not told here');
  }
}

/** The answer to what a process was asked that is gone. */
export const GONE: RpcAnswer = { result: {}, error: { code: null, message: 'the agent has gone', isGone: true } };

function quoted(msg: unknown): string {
  return (JSON.stringify(boundFrame(msg)) ?? '').slice(0, QUOTED);
}
