import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LaunchError } from './launch-error.mjs';
import { isPacked, READY, readyName, root } from './paths.mjs';

/**
 * Loads a module that is TypeScript, so that nothing has to be built first. Goes through `require`, whose hooks run in
 * place: those of `import` ask a thread for every single module, which makes a start take twice as long.
 *
 * @param {string} path from the project's root
 * @param {{ alone?: boolean }} [options] `alone`: what is loaded afterwards is none of tsx's business again, also what
 *   the module itself loads later
 * @returns {Promise<any>} its exports
 * @throws with code ERR_MODULE_NOT_FOUND when the packages are not installed
 */
export async function loadTypescript(path, { alone = false } = {}) {
  if (isPacked) return loadReady(path);
  const { register } = await import('tsx/cjs/api');
  const named = process.env.TSX_TSCONFIG_PATH;
  // The project's own, wherever the command is called from. It is read with the first module, and not inherited.
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

/** @param {string} path */
function loadReady(path) {
  const ready = join(READY, `${readyName(path)}.mjs`);
  if (existsSync(ready)) return import(pathToFileURL(ready).href);
  throw new LaunchError('that is not in a packed copy, which only serves; run it from the whole of Interlude', 3);
}
