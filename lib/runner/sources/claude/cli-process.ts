import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

/** What the SDK asks to be started. @see SpawnOptions, Agent SDK 0.3.329 */
export interface SpawnRequest {
  command: string;
  args: string[];
  cwd?: string;
  env: Record<string, string | undefined>;
  signal: AbortSignal;
}

export type SpawnedProcess = ChildProcessWithoutNullStreams;

export interface CliExit {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** The last line of its stderr. */
  lastWords: string | null;
}

const KEPT_CHARS = 4_000;
/** What the CLI said last may still be on its way when it is gone. */
const STDERR_GRACE_MS = 200;

/**
 * Starts the CLI in a process group of its own: Ctrl-C in the terminal is meant for the runner, which lets the agent
 * finish what it is at.
 */
export class CliProcess {
  readonly child: SpawnedProcess;
  readonly exited: Promise<CliExit>;
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
      // Not `close` alone: a shell that outlives the CLI may hold its stderr open for ever.
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
export function exitText({ exitCode, signal, lastWords }: CliExit): string {
  const how = signal !== null ? `ended by ${signal}` : exitCode === null ? 'ended' : `exited with code ${exitCode}`;
  return lastWords === null ? how : `${how}: ${lastWords}`;
}
