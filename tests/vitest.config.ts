import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { scale, TEST_MS, WAIT_MS } from './support/timeouts.ts';

/**
 * Groups files by environment. A worker serves one environment, so every switch between happy-dom and Node starts a
 * process.
 */
class ByEnvironment extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isPage = ({ moduleId }: TestSpecification) =>
      readFileSync(moduleId, 'utf8').startsWith('// @vitest-environment happy-dom');
    return [...sorted.filter(isPage), ...sorted.filter((file) => !isPage(file))];
  }
}

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
      'tests/support/setup.ts',
      'tests/support/property-scale.ts',
      // Servers in the larger scales log expected errors; vitest hides the output of passing tests there.
      ...(scale === 'quick' ? ['tests/support/fail-on-console.ts'] : []),
      'tests/support/reset-page.ts',
    ],
    sequence: { sequencer: ByEnvironment },
    maxWorkers: 2,
  },
});
