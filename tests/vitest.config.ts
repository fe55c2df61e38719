import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ByEnvironment } from './support/by-environment.ts';
import { TEST_MS, WAIT_MS } from './support/patience.ts';
import { scale } from './support/scale.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** `npm test -- changed` runs one folder at a time. */
const folder = process.env.INTERLUDE_TEST_FOLDER ?? '**';

export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@\//, replacement: `${root}/` }] },
  test: {
    include: [`tests/${folder}/**/*.test.{ts,tsx}`],
    exclude: ['node_modules', '.next', '.next-beneath', 'tests/e2e/**', 'tests/faults/**', 'tests/agents/**'],
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: WAIT_MS } },
    setupFiles: [
      'tests/support/patient-waits.ts',
      'tests/support/no-network.ts',
      'tests/support/property-scale.ts',
      // Servers of other hosts log what their tests do to them. There, vitest hides what passing tests print.
      ...(scale === 'quick' ? ['tests/support/quiet-console.ts'] : []),
      'tests/support/fresh-page.ts',
    ],
    sequence: { sequencer: ByEnvironment },
    maxWorkers: 2,
  },
});
