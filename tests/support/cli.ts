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
  return start(process.execPath, [program, ...args], env, { cwd });
}

export function runCli(args: string[], env: Record<string, string> = {}, cwd?: string): Promise<CliEnd> {
  return startCli(args, env, cwd).ended;
}

/**
 * A command as somebody pastes it into a terminal, whose shell knows nothing of the npm that runs these tests. What it
 * starts is a process group, which Ctrl-C reaches as a whole.
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
