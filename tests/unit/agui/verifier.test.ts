import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Dialect } from '@/lib/server/agui/client-events';
import { SEQUENCES } from '@/tests/support/strict-clients';
import { rejectionOf } from '../../support/agui-verifier';
import { rejectionBy } from '../../support/strict-clients';

/** The recorded verdicts of the clients. */
function measured(version: string): Map<string, boolean> {
  const text = readFileSync(new URL(`../../fixtures/agui/agui-verify-client-${version}.txt`, import.meta.url), 'utf8');
  const lines = text.matchAll(/^(\S.*?) {2,}(ok|FAIL)\b/gm);
  return new Map(
    [...lines].flatMap(([, name, verdict]) => (name === undefined ? [] : [[name.trim(), verdict === 'ok']])),
  );
}

beforeAll(() => {
  // The clients log their verdict there.
  for (const said of ['warn', 'error'] as const) vi.spyOn(console, said).mockImplementation(() => undefined);
});
afterAll(() => vi.restoreAllMocks());

const CASES: [Dialect, string][] = [
  ['1.0', '1.0.0'],
  ['0.0.59', '0.0.59'],
];

describe.each(CASES)('of %s', (dialect, version) => {
  const verdicts = measured(version);

  test('knows every recorded stream', () => {
    expect([...verdicts.keys()].filter((name) => !(name in SEQUENCES))).toEqual([]);
    expect(Object.keys(SEQUENCES).filter((name) => !verdicts.has(name))).toEqual([]);
    expect(verdicts.size).toBeGreaterThanOrEqual(40);
  });

  test.each(Object.entries(SEQUENCES))(
    'the verifier says what was measured, and the client says it still: %s',
    async (name, events) => {
      const isTaken = verdicts.get(name);
      expect([rejectionOf(events, dialect) === null, (await rejectionBy(events, dialect)) === null]).toEqual([
        isTaken,
        isTaken,
      ]);
    },
  );
});
