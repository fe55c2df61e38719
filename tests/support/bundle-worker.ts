import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What esbuild adds of its own. */
const RUNTIME = '<runtime>';

/** The handlers in one file, as they are deployed to a host that runs workers. */
export interface WorkerBundle {
  code: Uint8Array;
  /** Which file asks for which module of Node, as `file imports node:fs`. */
  nodeImports: string[];
  /** Every file it is made of, from the project's root. */
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
    // not `browser`, whose packages have their own ways, and not `node`, which has Node's modules
    platform: 'neutral',
    mainFields: ['module', 'main'],
    // told below, rather than to fail at the first
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
