import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../lib/launch/interlude.mjs', import.meta.url));

export interface CliRun {
  process: ChildProcess;
  ended: Promise<CliEnd>;
}

export interface CliEnd {
  /** null when it was killed. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/**
 * The command line as a process of its own, with nothing of the surrounding Interlude's environment.
 *
 * @param cwd where it is called from; default: here
 */
export function startCli(args: string[], env: Record<string, string> = {}, cwd = process.cwd()): CliRun {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('INTERLUDE_') && name !== 'PORT');
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...Object.fromEntries(inherited), ...env } as NodeJS.ProcessEnv,
    cwd,
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

export function runCli(args: string[], env: Record<string, string> = {}, cwd?: string): Promise<CliEnd> {
  return startCli(args, env, cwd).ended;
}
