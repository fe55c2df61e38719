import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TEST_MS, WAIT_MS } from './support/timeouts.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Repeats database-independent tests over a libSQL server. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: ['tests/property/*.test.ts', 'tests/unit/retention/*.test.ts'],
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: WAIT_MS } },
    globalSetup: 'tests/support/libsql-servers.ts',
    setupFiles: ['tests/support/setup.ts', 'tests/support/property-scale.ts'],
    maxWorkers: 2,
  },
});
