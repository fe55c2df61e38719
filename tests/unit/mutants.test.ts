import { expect, test } from 'vitest';
import { staleness } from '../mutants/mutant.mjs';
import { MUTANTS } from '../mutants/mutants.mjs';

test('every mutant matches its source file once and names an existing test file', () => {
  expect(MUTANTS.map(staleness).filter((why) => why !== null)).toEqual([]);
});

test('every mutant changes its file and has a unique name', () => {
  expect(MUTANTS.filter(({ find, replace }) => find === replace)).toEqual([]);
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});
