import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildFolder } from './build-folder.mjs';
import { root } from './root.mjs';

/** Where a packed copy has the TypeScript of its start-up code, compiled: `pack.mjs` makes both. */
export const READY = join(root, 'ready');

/** Whether this is such a copy: built for good, with only those packages that serving needs. */
export const isPacked = existsSync(READY);

/**
 * @param {string} path of a TypeScript file, from the project's root
 * @returns {string} the name in `READY` of what it was compiled to, without its ending
 */
export function readyName(path) {
  return path.replace(/\.ts$/, '').replaceAll('/', '-');
}

/**
 * Next's configuration as its build has it, which Next's own packed servers give to Next in an environment variable:
 * without that, it loads what reads the original.
 *
 * @param {string} basePath
 */
export function packedConfig(basePath) {
  const file = join(root, buildFolder(basePath), 'required-server-files.json');
  return JSON.stringify(JSON.parse(readFileSync(file, 'utf8')).config);
}
