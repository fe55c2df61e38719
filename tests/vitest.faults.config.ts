import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { WAIT_MS } from './support/patience';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Whole processes that are killed, starved and lied to, or real agents. Two files at a time: most of it is waiting. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: ['tests/faults/**/*.test.ts', 'tests/agents/**/*.test.ts'],
    // What hangs ends by them, and what is slow on a busy machine does not.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: WAIT_MS } },
    setupFiles: ['tests/support/patient-waits.ts'],
    maxWorkers: 2,
  },
});
