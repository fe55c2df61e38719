import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TEST_MS, WAIT_MS } from './support/patience.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Whole processes that are killed, starved and lied to, or real agents. Two files at a time: most of it is waiting. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: ['tests/faults/**/*.test.ts', 'tests/agents/**/*.test.ts'],
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: WAIT_MS } },
    setupFiles: ['tests/support/patient-waits.ts'],
    maxWorkers: 2,
  },
});
