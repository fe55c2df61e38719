import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isPacked, READY, readyName, root } from './paths.mjs';

/**
 * Loads a TypeScript module without a build. Uses `require`, whose hooks run in-process: `import` hooks go through a
 * thread for every module, which doubles start-up time.
 *
 * @param {string} path from the root
 * @param {{ alone?: boolean }} [options] `alone`: disables tsx for everything loaded later, including lazy imports of
 * the module
 * @returns {Promise<any>} its exports
 * @throws with code ERR_MODULE_NOT_FOUND if packages are not installed
 */
export async function loadTypescript(path, { alone = false } = {}) {
  if (isPacked) return import(pathToFileURL(join(READY, `${readyName(path)}.mjs`)).href);
  const { register } = await import('tsx/cjs/api');
  const named = process.env.TSX_TSCONFIG_PATH;
  // tsx reads the setting at the first module: restored below, so that child processes don't inherit it
  process.env.TSX_TSCONFIG_PATH = join(root, 'tsconfig.json');
  const unregister = register();
  try {
    return createRequire(import.meta.url)(join(root, path));
  } finally {
    if (alone) unregister();
    if (named === undefined) delete process.env.TSX_TSCONFIG_PATH;
    else process.env.TSX_TSCONFIG_PATH = named;
  }
}
