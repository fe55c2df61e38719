import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

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
 * @param conditions by which the packages' and our own `imports` and `exports` are chosen
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
