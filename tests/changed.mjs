import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../lib/launch/root.mjs';
import { LaunchError } from '../lib/launch/say.mjs';

/**
 * What a change can affect: `vitest related` follows imports, and the table below names the tests that reach a path in
 * another way: through a browser, in a process of their own, or by reading the file.
 */

/** A change of these can break any test. */
const EVERYTHING = [
  /^package(-lock)?\.json$/,
  /^tsconfig\.json$/,
  /^tests\/(vitest\.|run|stages|installs|fixtures\/)/,
  /^\.ci\//,
];

/** @type {readonly (readonly [path: RegExp, tests: readonly string[]])[]} */
export const REACHES = [];

/**
 * @param {string} [base] a commit; by default HEAD, or the commit before it where nothing has changed since
 * @returns {{ files: string[], since: string }} paths from the root
 */
export function changedFiles(base) {
  const since = base ?? (changedSince('HEAD').length > 0 ? 'HEAD' : 'HEAD~1');
  return { files: changedSince(since), since };
}

/** @param {string} base */
function changedSince(base) {
  return [
    ...git('diff', '--name-only', '--relative', base, '--'),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
}

/** @param {string[]} args */
function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new LaunchError(`git ${args.join(' ')} failed: ${stderr?.trim().split('\n')[0]}`, 2);
  return stdout.split('\n').filter(Boolean);
}

/**
 * @param {readonly string[]} files paths from the root
 * @returns {'everything' | { sources: string[], tests: string[] }} `sources`: for `vitest related`; `tests`: named by
 *   the table
 */
export function affectedBy(files) {
  if (files.some((file) => EVERYTHING.some((pattern) => pattern.test(file)))) return 'everything';
  const sources = files.filter((file) => /\.(ts|tsx|mjs|css|json)$/.test(file) && existsSync(join(root, file)));
  const tests = REACHES.flatMap(([path, reached]) => (files.some((file) => path.test(file)) ? reached : []));
  return { sources, tests: [...new Set(tests)] };
}
