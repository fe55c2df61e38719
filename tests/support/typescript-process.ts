import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Inside the project, so that packages resolve. */
const FOLDER = join(root, 'node_modules', '.cache', 'interlude-programs');

/** Bundle paths by program. */
const bundles = new Map<string, string>();

/**
 * Like `startTypescript`, but bundles the program once, which halves each start. For programs that are killed and
 * restarted often.
 */
export function startBundled(path: string, args: string[], options: SpawnOptions): ChildProcess {
  const bundle = bundles.get(path) ?? bundleOf(path);
  bundles.set(path, bundle);
  return spawn(process.execPath, [bundle, ...args], { cwd: root, ...options });
}

function bundleOf(path: string): string {
  const name = `${basename(path, '.ts')}.mjs`;
  const own = join(FOLDER, `${process.pid}-${name}`);
  buildSync({
    absWorkingDir: root,
    entryPoints: [path],
    outfile: own,
    alias: { '@': root },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // contains native code
    external: ['libsql'],
    // for CommonJS packages
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  });
  // atomic, because another process may be starting its own bundle
  renameSync(own, join(FOLDER, name));
  return join(FOLDER, name);
}

const program = fileURLToPath(new URL('./run-typescript.mjs', import.meta.url));

/** Starts a TypeScript program (path relative to the project root) as a process. */
export function startTypescript(path: string, args: string[], options: SpawnOptions): ChildProcess {
  return spawn(process.execPath, [program, path, ...args], { cwd: root, ...options });
}
