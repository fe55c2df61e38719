import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { expect } from 'vitest';
import { withDeadline } from './timeouts';

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

export interface CliRun {
  process: ChildProcess;
  ended: Promise<CliEnd>;
}

export interface CliEnd {
  /** null if killed. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Starts the command line as a process, without inherited Interlude variables.
 *
 * @param cwd where it is called from; default: here
 */
export function startCli(args: string[], env: Record<string, string> = {}, cwd = process.cwd()): CliRun {
  return start(process.execPath, [program, ...args], env, { cwd });
}

export function runCli(args: string[], env: Record<string, string> = {}, cwd?: string): Promise<CliEnd> {
  return startCli(args, env, cwd).ended;
}

/**
 * Starts a command as pasted into a terminal, without the variables of the npm that runs the tests. The processes form
 * a group, so Ctrl-C reaches all.
 */
export function startShell(command: string, env: Record<string, string>, cwd: string): CliRun {
  return start('sh', ['-c', command], env, { cwd, detached: true }, /^(npm_|INIT_CWD$|NODE_ENV$|VITEST)/);
}

export function runShell(command: string, env: Record<string, string>, cwd: string): Promise<CliEnd> {
  return startShell(command, env, cwd).ended;
}

function start(
  file: string,
  args: string[],
  env: Record<string, string>,
  place: { cwd: string; detached?: boolean },
  unknown = /^$/,
): CliRun {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('INTERLUDE_') && name !== 'PORT' && !unknown.test(name),
  );
  const child = spawn(file, args, {
    env: { ...Object.fromEntries(inherited), ...env } as NodeJS.ProcessEnv,
    ...place,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    out.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    out.stderr += chunk;
  });
  const ended = new Promise<CliEnd>((resolve) => {
    child.once('close', (exitCode) => resolve({ exitCode, ...out }));
  });
  return { process: child, ended };
}

/** Runs a program in a terminal via `script`, which every Debian system has. */
export class InTerminal {
  readonly #child: ChildProcess;
  readonly #watchers = new Set<() => void>();
  /** Terminal output so far. */
  shown = '';
  readonly ended: Promise<number | null>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string) {
    const command = args.map(shellWord).join(' ');
    this.#child = spawn('script', ['-qec', command, '/dev/null'], { env, cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout?.on('data', (chunk) => {
      this.shown += chunk;
      for (const look of this.#watchers) look();
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code) => resolve(code));
    });
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Resolves once the terminal shows the words. */
  async shows(words: string): Promise<void> {
    if (this.shown.includes(words)) return;
    await withDeadline(
      () => `the terminal does not show "${words}" but: ${this.shown}`,
      new Promise<void>((resolve) => {
        const look = () => {
          if (!this.shown.includes(words)) return;
          this.#watchers.delete(look);
          resolve();
        };
        this.#watchers.add(look);
      }),
    );
  }

  /** Closes the terminal, as a closed window does. */
  close(): void {
    this.#child.kill('SIGKILL');
  }
}

const startProgram = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';

/** Runs `npm start` and expects it to refuse. @returns its one line of output */
export async function refusedStart(env: Record<string, string>): Promise<string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(INTERLUDE_|HOST$|PORT$|npm_)/.test(name));
  const child = spawn(process.execPath, [startProgram, '--port', '0'], {
    env: { ...(Object.fromEntries(kept) as NodeJS.ProcessEnv), INTERLUDE_TOKEN: TOKEN, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const exitCode = await new Promise((resolve) => child.once('close', resolve));
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^interlude: [^\n]+\n$/) });
  return stderr;
}
