import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import { root } from '../../lib/launch/paths.mjs';
import base from '../vitest.config.ts';
import { mutate } from './mutant.mjs';
import { MUTANTS } from './mutants.mjs';

/** A hung test ends after this many milliseconds, by its own waits (INTERLUDE_TEST_WAIT_MS) sooner. */
const TEST_MS = 15_000;

const {
  /** The mutant's name; none leaves the source unchanged. */
  INTERLUDE_MUTANT: name,
  /** A file that gets a line whenever the mutant is loaded. */
  INTERLUDE_MUTANT_LOADED: loaded,
  /** A folder for transformed modules, shared by all runs. */
  INTERLUDE_MUTANT_CACHE: cache,
} = process.env;

/** Replaces the source of one file as it is loaded, so that other runs see the file on disk unchanged. */
function mutantPlugin(): Plugin {
  const mutant = MUTANTS.find((known) => known.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);
  const path = join(root, mutant.file);
  const isMutated = (id: string) => id.split('?')[0] === path;
  return {
    name: 'interlude-mutant',
    enforce: 'pre',
    // other modules come from the cache of the run without this plugin
    api: { vitest: { experimental: { ignoreFsModuleCache: true } } },
    configureVitest({ experimental_defineCacheKeyGenerator: define }) {
      define(({ id }) => (isMutated(id) ? false : null));
    },
    transform(source, id) {
      if (!isMutated(id)) return;
      if (loaded) appendFileSync(loaded, `${name}\n`);
      return { code: mutate(mutant, source), map: null };
    },
  };
}

export default defineConfig({
  ...base,
  plugins: [...(base.plugins ?? []), ...(name ? [mutantPlugin()] : [])],
  test: {
    ...base.test,
    include: ['tests/**/*.test.ts', 'tests/**/*.test.tsx'],
    exclude: ['node_modules'],
    isolate: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    ...(cache ? { experimental: { fsModuleCache: true, fsModuleCachePath: cache } } : {}),
  },
});
