import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { root } from '../../lib/launch/root.mjs';
import base from '../vitest.config';
import { mutate } from './mutant.mjs';
import { MUTANTS } from './mutants.mjs';

/** A hung test ends after this many milliseconds, by its own waits (INTERLUDE_TEST_WAIT_MS) sooner. */
const TEST_MS = 15_000;

/**
 * Replaces the source of one file as it is loaded, so that other runs see the file on disk unchanged. Each load appends
 * a line to the file named by INTERLUDE_MUTANT_LOADED.
 */
function mutantPlugin(name: string): Plugin {
  const mutant = MUTANTS.find((known) => known.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);
  const path = join(root, mutant.file);
  return {
    name: 'interlude-mutant',
    enforce: 'pre',
    transform(source, id) {
      if (id.split('?')[0] !== path) return;
      const report = process.env.INTERLUDE_MUTANT_LOADED;
      if (report) appendFileSync(report, `${name}\n`);
      return { code: mutate(mutant, source), map: null };
    },
  };
}

const name = process.env.INTERLUDE_MUTANT;

export default defineConfig({
  ...base,
  plugins: [...(base.plugins ?? []), ...(name ? [mutantPlugin(name)] : [])],
  test: {
    ...base.test,
    include: ['tests/**/*.test.ts', 'tests/**/*.test.tsx'],
    exclude: ['node_modules'],
    isolate: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
  },
});
