/**
 * Runs the mutants named by the arguments one after the other in one instance of vitest, whose start costs more than
 * most of their tests. Prints each verdict as a line of JSON.
 *
 * Failure: a mutant over the limit ends the process without its verdict.
 */
import { join } from 'node:path';
import { createVitest } from 'vitest/node';
import { root } from '../../lib/launch/paths.mjs';
import { mutate } from './mutant.mjs';
import { MUTANTS } from './mutants.mjs';

/** @typedef {{ name: string, killedBy?: string, why?: string, seconds: number }} Verdict */

/** Limit in milliseconds of a run with one mutant. */
const LIMIT_MS = 120_000;

/** @type {import('./mutant.mjs').Mutant | undefined} */
let mutant;
let isLoaded = false;

/** @param {string} id */
const isMutated = (id) => mutant !== undefined && id.split('?')[0] === join(root, mutant.file);

/**
 * Replaces the source of one file when it is loaded. The file on disk stays unchanged.
 *
 * @type {import('vitest/config').Plugin}
 */
const plugin = {
  name: 'interlude-mutant',
  enforce: 'pre',
  // The other modules come from the cache that the run without this plugin has filled.
  api: { vitest: { experimental: { ignoreFsModuleCache: true } } },
  configureVitest({ experimental_defineCacheKeyGenerator: define }) {
    define(({ id }) => (isMutated(id) ? false : null));
  },
  transform(source, id) {
    if (mutant === undefined || !isMutated(id)) return;
    isLoaded = true;
    return { code: mutate(mutant, source), map: null };
  },
};

const vitest = await createVitest(
  'test',
  { config: 'tests/mutants/vitest.config.ts', root, watch: false, bail: 1, maxWorkers: 1, reporters: [{}] },
  { plugins: [plugin] },
);

/** @param {import('./mutant.mjs').Mutant} current @returns {Promise<{ killedBy?: string, why?: string }>} */
async function verdictOn(current) {
  mutant = current;
  isLoaded = false;
  const file = join(root, current.file);
  vitest.invalidateFile(file);
  const specifications = await vitest.globTestSpecifications([current.test]);
  const { testModules } = await vitest.runTestSpecifications(specifications);
  vitest.invalidateFile(file);
  const module = testModules.find(({ moduleId }) => moduleId === join(root, current.test));
  if (module === undefined) return { why: 'its test file did not run' };
  if (!isLoaded) return { why: 'never loaded by its test' };
  for (const killer of module.children.allTests('failed')) return { killedBy: killer.fullName };
  if (module.ok()) return { why: 'survived' };
  return { why: `its test file did not run: ${module.errors()[0]?.message?.split('\n')[0]}` };
}

for (const name of process.argv.slice(2)) {
  const current = MUTANTS.find((known) => known.name === name);
  if (current === undefined) throw new Error(`there is no mutant "${name}"`);
  const startedAt = performance.now();
  const limit = setTimeout(() => process.exit(1), LIMIT_MS);
  const verdict = await verdictOn(current);
  clearTimeout(limit);
  process.stdout.write(`${JSON.stringify({ name, ...verdict, seconds: (performance.now() - startedAt) / 1_000 })}\n`);
}
process.exit(0);
