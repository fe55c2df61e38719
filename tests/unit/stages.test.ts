import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { affectedBy, REACHES } from '../changed.mjs';
import { filesOf, misplacedHere, misplacedTests, STAGES, scripts } from '../stages.mjs';

const TEST = "import { test } from 'vitest';\ntest('adds', () => {});\n";
const stagesOf = (path: string, text = TEST) => misplacedTests([{ path, text }])[0]?.stages ?? 'one';

describe('tiers', () => {
  test.each([
    'tests/unit/a.test.ts',
    'tests/unit/deep/er/a.all.test.ts',
    'tests/ui/a.test.tsx',
    'tests/e2e/a.all.test.ts',
    'tests/faults/a.test.ts',
  ])('assign %s to one stage', (path) => expect(stagesOf(path)).toBe('one'));

  test.each([
    'tests/unit/a.slow.test.ts',
    'tests/unit/a.spec.ts',
    'tests/new/a.test.ts',
    'tests/unit/a.test.mjs',
    'tests/a.test.ts',
    'tests/unit/a.soak.ts',
    'tests/unit/a-tests.ts',
    'lib/server/ingest/a.test.ts',
  ])('reject %s, which no stage runs', (path) => expect(stagesOf(path)).toEqual([]));

  test('reject a file that two stages run', () => {
    const [unit] = STAGES.filter(({ name }) => name === 'unit');
    const twice = [unit, { ...unit, name: 'again' }] as typeof STAGES;
    expect(misplacedTests([{ path: 'tests/unit/a.test.ts', text: TEST }], twice)).toEqual([
      { path: 'tests/unit/a.test.ts', stages: ['unit', 'again'] },
    ]);
  });

  test('ignore a suite that other files call', () => {
    expect(stagesOf('tests/contract/a-contract.ts', `export function describeA() {\n  ${TEST}}\n`)).toBe('one');
  });

  test('contain every test file of this checkout', () => expect(misplacedHere()).toEqual([]));

  test('rerun the properties of the first tier in the second', () => {
    const [properties] = STAGES.filter(({ name }) => name === 'properties');
    const files = filesOf(properties as (typeof STAGES)[number]);
    expect(files).toContain('tests/property/transcript.test.ts');
    expect(files.filter((file) => !file.startsWith('tests/property/')).length).toBeGreaterThan(5);
  });
});

describe('changed', () => {
  test('names existing test files, and reaches every browser test of the first tier', () => {
    const all = scripts('tests');
    const named = REACHES.flatMap(({ tests }) => tests);
    expect(named.filter((file) => !all.includes(file))).toEqual([]);
    const browser = all.filter((file) => STAGES.find(({ name }) => name === 'e2e')?.files?.test(file));
    expect(browser.filter((file) => !named.includes(file))).toEqual([]);
  });

  test('names existing paths', () => {
    const isThere = (path: string) => readdirSync(dirname(`${path}*`)).some((name) => name.startsWith(basename(path)));
    const paths = REACHES.flatMap(({ paths }) => paths);
    expect(paths.filter((path) => !(path.endsWith('/') ? existsSync(path) : isThere(path)))).toEqual([]);
  });

  test('selects a browser test for every part of the pages', () => {
    const parts = scripts('app', 'components', 'public').filter((file) => {
      const affected = affectedBy([file]);
      return affected !== 'everything' && !affected.tests.some((test) => test.startsWith('tests/e2e/'));
    });
    expect(parts).toEqual([]);
  });

  test('runs everything for a setup file of vitest', () => {
    expect(affectedBy(['tests/support/shared-dashboards.ts'])).toBe('everything');
    expect(affectedBy(['tests/support/visit.ts'])).toMatchObject({ sources: ['tests/support/visit.ts'] });
  });

  test('runs everything for a new lock file, and only its readers for a page of documentation', () => {
    expect(affectedBy(['docs/agui.md', 'package-lock.json'])).toBe('everything');
    expect(affectedBy(['lib/protocol/PROTOCOL.md'])).toMatchObject({
      sources: [],
      tests: expect.arrayContaining(['tests/unit/protocol/protocol-page.test.ts']),
    });
  });

  test('selects browser tests of requests when their components change', () => {
    const affected = affectedBy(['components/requests/request-card.tsx']);
    expect(affected).toMatchObject({ sources: ['components/requests/request-card.tsx'] });
    expect(affected).toHaveProperty('tests', expect.arrayContaining(['tests/e2e/shown-is-run.test.ts']));
  });
});
