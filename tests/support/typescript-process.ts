import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./run-typescript.mjs', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));

/** A program in TypeScript (its path from the project's root) as a process of its own, to be killed for instance. */
export function startTypescript(path: string, args: string[], options: SpawnOptions): ChildProcess {
  return spawn(process.execPath, [program, path, ...args], { cwd: root, ...options });
}
