import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** In the project, so that packages are found from it. */
const FOLDER = join(root, 'node_modules', '.cache', 'interlude-programs');

/** Where each program's bundle lies. */
const bundles = new Map<string, string>();

/**
 * Starts a program in TypeScript (its path from the project's root) as a process of its own, as `startTypescript` does.
 * It is bundled once, so that each start takes half the time: for programs that are killed again and again.
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
    // it has native code
    external: ['libsql'],
    // of packages that are CommonJS
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  });
  // another process may start what it has bundled itself
  renameSync(own, join(FOLDER, name));
  return join(FOLDER, name);
}
