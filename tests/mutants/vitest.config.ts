import { defineConfig } from 'vitest/config';
import base from '../vitest.config.ts';

/** A hung test ends after this many milliseconds, by its own waits (INTERLUDE_TEST_WAIT_MS) sooner. */
const TEST_MS = 15_000;

/** A folder for transformed modules, shared by all runs. */
const cache = process.env.INTERLUDE_MUTANT_CACHE;

export default defineConfig({
  ...base,
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
