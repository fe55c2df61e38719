import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { differences, expectedOf, playCase } from '../support/play-case';

const CASES = readdirSync(fileURLToPath(new URL('../fixtures/cases/', import.meta.url))).sort();

/** Public bug reports, re-enacted: what agents write and what terminals do, through the adapters, ingest and queries. */
describe('a public bug report', () => {
  test.each(CASES)('%s comes out right', async (name) => {
    expect(differences(await playCase(name), expectedOf(name))).toEqual([]);
  });
});
