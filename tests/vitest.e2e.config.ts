import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TEST_MS, WAIT_MS } from './support/timeouts.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A built dashboard and real browsers. Two files in parallel, because half of the time is waiting. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: ['tests/e2e/**/*.test.ts'],
    isolate: false,
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: WAIT_MS } },
    globalSetup: 'tests/support/shared-dashboards.ts',
    setupFiles: ['tests/support/setup.ts'],
    maxWorkers: 2,
  },
});
