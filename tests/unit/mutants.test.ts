import { expect, test } from 'vitest';
import { staleness } from '../mutants/mutant.mjs';
import { MUTANTS } from '../mutants/mutants.mjs';

test('every mutant fits its source file and names a test file that exists', () => {
  expect(MUTANTS.map(staleness).filter((why) => why !== null)).toEqual([]);
});

test('every mutant changes its file and has a name of its own', () => {
  expect(MUTANTS.filter(({ find, replace }) => find === replace)).toEqual([]);
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});
