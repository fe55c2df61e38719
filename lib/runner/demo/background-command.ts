import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

export interface BackgroundCommand {
  /** Its exit code; null if it was ended, or could not be started. */
  ended: Promise<number | null>;
  stop: () => void;
}

const GROUPS = process.platform !== 'win32';

/** Runs a command through the shell, in a process group of its own, so that `stop` ends what it has started as well. */
export function startInBackground(
  command: string,
  { cwd, env, outputFile }: { cwd: string; env: Record<string, string | undefined>; outputFile: string },
): BackgroundCommand {
  mkdirSync(dirname(outputFile), { recursive: true });
  const output = openSync(outputFile, 'w', 0o600);
  const child = spawn(command, {
    shell: true,
    cwd,
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', output, output],
    detached: GROUPS,
    windowsHide: true,
  });
  closeSync(output);
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', (exitCode) => resolve(exitCode));
  });
  return {
    ended,
    stop() {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      try {
        if (GROUPS) process.kill(-child.pid, 'SIGTERM');
        else child.kill();
      } catch {
        // it has ended just now
      }
    },
  };
}
