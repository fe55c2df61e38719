import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/**
 * What the dashboard is built with when it is to be beneath a path: it stands for any, and the one that is chosen at
 * start takes its place. Nothing else of a build looks like it.
 */
export const PLACEHOLDER = '/__interlude_base__';

/**
 * Where a build is, from the project's folder: each path has its own. All but the one without a path are as deep, since
 * they link to packages.
 *
 * @param {string} basePath
 */
export function buildFolder(basePath) {
  return basePath === '' ? '.next' : `.next-beneath/${basePath.slice(1).replaceAll('/', '+')}`;
}

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
