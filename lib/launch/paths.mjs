import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Placeholder base path, which start-up replaces with the configured one. Occurs nowhere else in a build. */
export const PLACEHOLDER = '/__interlude_base__';

/**
 * Build folder for a base path, relative to the root. All except the plain one have the same depth, because they
 * contain relative links to packages.
 *
 * @param {string} basePath
 */
export function buildFolder(basePath) {
  return basePath === '' ? '.next' : `.next-beneath/${basePath.slice(1).replaceAll('/', '+')}`;
}

/** Compiled TypeScript of a packed copy's start-up code, created by `pack.mjs`. */
export const READY = join(root, 'ready');

/** True in a packed copy, which is prebuilt and has only the packages that serving needs. */
export const isPacked = existsSync(READY);

/**
 * @param {string} path of a TypeScript file, from the root
 * @returns {string} its file name in `READY`, without extension
 */
export function readyName(path) {
  return path.replace(/\.ts$/, '').replaceAll('/', '-');
}

/**
 * Next's resolved configuration. Next's standalone servers pass it in an environment variable; without it, Next loads
 * the original file and its dependencies.
 *
 * @param {string} basePath
 */
export function packedConfig(basePath) {
  const file = join(root, buildFolder(basePath), 'required-server-files.json');
  return JSON.stringify(JSON.parse(readFileSync(file, 'utf8')).config);
}
