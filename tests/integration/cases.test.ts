import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { differences, expectedOf, playCase } from '../support/play-case';

const CASES = readdirSync(fileURLToPath(new URL('../fixtures/cases/', import.meta.url))).sort();

/** Public bug reports re-enacted: agent output and terminal events through adapters, ingest and queries. */
describe('a public bug report', () => {
  test.each(CASES)('%s has the expected outcome', async (name) => {
    expect(differences(await playCase(name), expectedOf(name))).toEqual([]);
  });
});
