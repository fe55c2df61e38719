import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../lib/launch/paths.mjs';

/**
 * A small fault in the source and the test that must fail.
 *
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} file the source file, relative to the root
 * @property {string} find text that occurs exactly once in the file
 * @property {string} replace
 * @property {string} test the cheapest test file that must fail, relative to the root
 */

/**
 * @param {Mutant} mutant
 * @param {string} source of its file
 * @returns {string}
 * @throws Error if the text to replace does not occur exactly once
 */
export function mutate({ file, find, replace }, source) {
  const parts = source.split(find);
  if (parts.length !== 2) throw new Error(`${file}: found ${parts.length - 1} times, expected once: ${find}`);
  return parts.join(replace);
}

/**
 * The reason that an entry can't run, or null.
 *
 * @param {Mutant} mutant
 * @returns {string | null}
 */
export function staleness(mutant) {
  const missing = [mutant.file, mutant.test].find((path) => !existsSync(join(root, path)));
  if (missing !== undefined) return `${missing} does not exist`;
  try {
    mutate(mutant, readFileSync(join(root, mutant.file), 'utf8'));
    return null;
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}
