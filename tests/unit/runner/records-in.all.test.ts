import { parseRecords } from '@interlude/runner/sources/hooks/transcript-files';
import { expect, test } from 'vitest';
import { cpuMs } from '@/tests/support/timing';

test.each([
  ['beginnings that never end', '{"type":'.repeat(600_000)],
  ['beginnings in a text that never ends', `{"type":"${'{"type":'.repeat(600_000)}`],
  ['objects that name nothing', '{"type":1}'.repeat(500_000)],
  ['objects in objects', `${'{"type":'.repeat(250_000)}1${'}'.repeat(250_000)}`],
])('recordsIn takes bounded time for 5 MB of %s', (_, text) => {
  expect(cpuMs(() => parseRecords(text))).toBeLessThan(3_000);
});
