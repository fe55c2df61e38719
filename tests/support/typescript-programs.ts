import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { renameSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, buildSync } from 'esbuild';

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

/** esbuild's own runtime module. */
const RUNTIME = '<runtime>';

/** The handlers bundled into one file for a workers host. */
interface WorkerBundle {
  code: Uint8Array;
  /** Imports of Node modules, as `file imports node:fs`. */
  nodeImports: string[];
  /** Bundled files, relative to the project root. */
  files: string[];
}

/**
 * @param conditions that select package `imports` and `exports`
 */
export async function bundleWorker(conditions = ['workerd', 'worker']): Promise<WorkerBundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['tests/support/worker-entry.ts'],
    alias: { '@': root },
    conditions,
    // not `browser`, which selects browser builds, and not `node`, which imports Node modules
    platform: 'neutral',
    mainFields: ['module', 'main'],
    // collected below instead of failing at the first
    external: ['node:*', ...builtinModules],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    outdir: 'worker',
    metafile: true,
    logLevel: 'silent',
  });
  const inputs = Object.entries(metafile.inputs);
  const nodeImports = inputs.flatMap(([file, { imports }]) =>
    imports.filter(({ path, external }) => external && path !== RUNTIME).map(({ path }) => `${file} imports ${path}`),
  );
  return { code: outputFiles[0]?.contents ?? new Uint8Array(), nodeImports, files: inputs.map(([file]) => file) };
}
