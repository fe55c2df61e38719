import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Whole processes that are killed, starved and lied to, or real agents. Two files at a time: most of it is waiting. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: ['tests/faults/**/*.test.ts', 'tests/agents/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 15_000 } },
    maxWorkers: 2,
  },
});
