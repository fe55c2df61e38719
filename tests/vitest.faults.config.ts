import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TEST_MS, WAIT_MS } from './support/timeouts.ts';

/** `npm test -- changed` runs one folder at a time. */
const folder = process.env.INTERLUDE_TEST_FOLDER;

const root = fileURLToPath(new URL('..', import.meta.url));

/** Whole processes under faults, and real agents. Two files in parallel, because most of the time is waiting. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: folder ? [`tests/faults/${folder}/*.test.ts`] : ['tests/faults/**/*.test.ts', 'tests/agents/**/*.test.ts'],
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: WAIT_MS } },
    setupFiles: ['tests/support/setup.ts'],
    maxWorkers: 2,
  },
});
