import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';

/**
 * What belongs to the dashboard and not to what the agent runs, and npm's idea of where packages go (`npm --prefix`).
 */
const WITHHELD = /^(INTERLUDE_|npm_config_(local_|global_)?prefix$)/;

/** The environment an agent gets: this one's, without what is none of its business. */
export function agentEnvironment(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !WITHHELD.test(name)));
}

/** An agent's program. The Agent SDK of Claude Code asks for it in the same words (SpawnOptions, 0.3.332). */
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
  lastWords: string | null;
}

const KEPT_CHARS = 4_000;
/** What the agent said last may still be on its way when it is gone. */
const STDERR_GRACE_MS = 200;

/**
 * Starts an agent in a process group of its own: Ctrl-C in the terminal is meant for the runner, which lets the agent
 * finish what it is at.
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
      this.#stderr = (this.#stderr + text).slice(-KEPT_CHARS);
      onStderr(text);
    });
    this.exited = new Promise((resolve) => {
      const end = (exitCode: number | null, signal: NodeJS.Signals | null) =>
        resolve({ exitCode, signal, lastWords: this.#stderr.trim().split('\n').at(-1)?.trim() || null });
      // Not `close` alone: a shell that outlives the agent may hold its stderr open for ever.
      this.child.once('close', end);
      this.child.once('exit', (code, signal) => setTimeout(() => end(code, signal), STDERR_GRACE_MS).unref());
      this.child.once('error', (error) => {
        this.#stderr += `\n${error.message}`;
        // one that could not be started never closes
        if (this.child.pid === undefined) end(null, null);
      });
    });
  }

  get pid(): number | null {
    return this.child.pid ?? null;
  }
}

/** How a process ended, for people: `exited with code 1: No conversation found`. */
export function exitText({ exitCode, signal, lastWords }: AgentExit): string {
  const how = signal !== null ? `ended by ${signal}` : exitCode === null ? 'ended' : `exited with code ${exitCode}`;
  return lastWords === null ? how : `${how}: ${lastWords}`;
}

/**
 * One JSON value a line, as agents write them to their stdout.
 *
 * Ordering: lines are handed over in the order in which they came, each once it is whole.
 * Failure: a line that is no JSON, or too long to be held, is told as `onUnreadable` and passed over; what follows is
 * read. What a process that ended left without a line break is one of these.
 */
interface JsonLinesListener {
  onValue(value: unknown): void;
  /** @param line its beginning */
  onUnreadable(why: 'not JSON' | 'too long' | 'cut off', line: string): void;
}

/** UTF-16 units. What an agent writes in one line, images included, is far below. */
const MAX_LINE = 64 * 1024 * 1024;
const QUOTED = 200;

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

  /** Nothing more comes. */
  end(): void {
    this.#add(this.#decoder.end());
    const rest = this.#parts.join('').trim();
    if (rest !== '') this.#listener.onUnreadable('cut off', rest.slice(0, QUOTED));
    this.#parts = [];
    this.#length = 0;
  }

  #add(piece: string): void {
    this.#length += piece.length;
    // Of a line that is too long only the beginning is kept, to quote it.
    if (this.#length <= this.#maxLine) this.#parts.push(piece);
    else if (this.#parts.length > 1) this.#parts = [this.#parts.join('').slice(0, QUOTED)];
  }

  #line(): void {
    const line = this.#parts.join('').trim();
    const isTooLong = this.#length > this.#maxLine;
    this.#parts = [];
    this.#length = 0;
    if (isTooLong) this.#listener.onUnreadable('too long', line.slice(0, QUOTED));
    else if (line !== '') this.#value(line);
  }

  #value(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#listener.onUnreadable('not JSON', line.slice(0, QUOTED));
      return;
    }
    this.#listener.onValue(value);
  }
}
