import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';

/** Interlude's own variables, and npm's prefix (`npm --prefix`), which would redirect the agent's installs. */
const WITHHELD = /^(INTERLUDE_|npm_config_(local_|global_)?prefix$)/;

/** The environment for an agent's process. */
export function agentEnvironment(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !WITHHELD.test(name)));
}

/** Compatible with SpawnOptions of Claude Code's Agent SDK 0.3.332. */
export interface SpawnRequest {
  command: string;
  args: string[];
  cwd?: string;
  env: Record<string, string | undefined>;
  signal: AbortSignal;
}

export type SpawnedProcess = ChildProcessWithoutNullStreams;

export interface AgentExit {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** The last line of its stderr. */
  lastOutput: string | null;
}

const MAX_STDERR_CHARACTERS = 4_000;
/** Output may arrive after the exit. */
const STDERR_GRACE_MS = 200;

/**
 * Starts an agent in its own process group, so that Ctrl-C in the terminal reaches only the runner, which lets the agent
 * finish.
 */
export class AgentProcess {
  readonly child: SpawnedProcess;
  readonly exited: Promise<AgentExit>;
  #stderr = '';

  constructor(request: SpawnRequest, onStderr: (text: string) => void) {
    this.child = spawn(request.command, request.args, {
      cwd: request.cwd,
      env: request.env as NodeJS.ProcessEnv,
      signal: request.signal,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARACTERS);
      onStderr(text);
    });
    this.exited = new Promise((resolve) => {
      const end = (exitCode: number | null, signal: NodeJS.Signals | null) =>
        resolve({ exitCode, signal, lastOutput: this.#stderr.trim().split('\n').at(-1)?.trim() || null });
      // Not only on `close`, because a shell that outlives the agent may keep its stderr open.
      this.child.once('close', end);
      this.child.once('exit', (code, signal) => setTimeout(() => end(code, signal), STDERR_GRACE_MS).unref());
      this.child.once('error', (error) => {
        this.#stderr += `\n${error.message}`;
        // A process that failed to start never emits `close`.
        if (this.child.pid === undefined) end(null, null);
      });
    });
  }

  get pid(): number | null {
    return this.child.pid ?? null;
  }
}

/** For example `exited with code 1: No conversation found`. */
export function exitText({ exitCode, signal, lastOutput }: AgentExit): string {
  const how = signal !== null ? `ended by ${signal}` : exitCode === null ? 'ended' : `exited with code ${exitCode}`;
  return lastOutput === null ? how : `${how}: ${lastOutput}`;
}

interface JsonLinesListener {
  onValue(value: unknown): void;
  /** @param line its beginning */
  onUnreadable(why: 'not JSON' | 'too long' | 'cut off', line: string): void;
}

/** Characters. Far more than agents write in a line, including images. */
const MAX_LINE = 64 * 1024 * 1024;
const MAX_QUOTED = 200;

/**
 * Parses JSON lines from an agent's stdout.
 *
 * Ordering: complete lines are passed on in order.
 * Failure: a line that is not JSON, too long, or cut off by the end of the process goes to `onUnreadable`; parsing
 * continues after it.
 */
export class JsonLines {
  readonly #listener: JsonLinesListener;
  readonly #maxLine: number;
  readonly #decoder = new StringDecoder('utf8');
  #parts: string[] = [];
  #length = 0;

  constructor(listener: JsonLinesListener, maxLine = MAX_LINE) {
    this.#listener = listener;
    this.#maxLine = maxLine;
  }

  write(chunk: Buffer): void {
    const pieces = this.#decoder.write(chunk).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      this.#add(piece);
      this.#line();
    }
    this.#add(last);
  }

  end(): void {
    this.#add(this.#decoder.end());
    const rest = this.#parts.join('').trim();
    if (rest !== '') this.#listener.onUnreadable('cut off', rest.slice(0, MAX_QUOTED));
    this.#parts = [];
    this.#length = 0;
  }

  #add(piece: string): void {
    this.#length += piece.length;
    // Keeps only the beginning of an overlong line, for the error.
    if (this.#length <= this.#maxLine) this.#parts.push(piece);
    else if (this.#parts.length > 1) this.#parts = [this.#parts.join('').slice(0, MAX_QUOTED)];
  }

  #line(): void {
    const line = this.#parts.join('').trim();
    const isTooLong = this.#length > this.#maxLine;
    this.#parts = [];
    this.#length = 0;
    if (isTooLong) this.#listener.onUnreadable('too long', line.slice(0, MAX_QUOTED));
    else if (line !== '') this.#value(line);
  }

  #value(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#listener.onUnreadable('not JSON', line.slice(0, MAX_QUOTED));
      return;
    }
    this.#listener.onValue(value);
  }
}
