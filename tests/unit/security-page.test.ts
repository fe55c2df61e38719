import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/security.md');
const rows = [...page.matchAll(/^\| (\d[^|]*) \| ([^|]+) \| ([^|]*) \|([^|]*)\|$/gm)];

/** Met by documents or a dependency: there is no behaviour of ours to test. */
const UNTESTED = [
  ...['3.7.1', '6.1.1, 6.1.3', '6.4.2', '7.1.1–7.1.3', '11.1.1, 11.1.2', '11.2.1, 11.2.3', '12.3.2, 12.3.4'],
  ...['14.1.1, 14.1.2', '15.1.1', '16.1.1, 16.2.3'],
];

describe('docs/security.md', () => {
  test('names existing code and tests', () => {
    const named = [...page.matchAll(/`((?:app|components|db|lib|tests)\/[^` ]+|[\w-]+\.(?:ts|json)|Dockerfile)`/g)];
    const missing = named.map(([, path = '']) => path).filter((path) => !existsSync(new URL(path, root)));
    expect(named.length).toBeGreaterThan(150);
    expect(missing).toEqual([]);
  });

  test('has each requirement once', () => {
    const numbers = [...page.matchAll(/\b(\d+)\.(\d+)\.(\d+)(?:–(\d+)\.(\d+)\.(\d+))?/g)]
      .filter(({ index }) => index > page.indexOf('## Met'))
      .flatMap(([, chapter, section, first, , toSection, last]) =>
        last === undefined || section !== toSection
          ? [`${chapter}.${section}.${first}`]
          : Array.from(
              { length: Number(last) - Number(first) + 1 },
              (_, index) => `${chapter}.${section}.${Number(first) + index}`,
            ),
      );
    const twice = numbers.filter((number, index) => numbers.indexOf(number) !== index);
    expect(twice).toEqual([]);
    expect(numbers.length).toBeGreaterThan(200);
  });

  test('names a test for every met requirement, except those that only documents meet', () => {
    const untested = rows.filter(([, , , , tests]) => tests?.trim() === '').map(([, number]) => number);
    expect(rows.length).toBeGreaterThan(110);
    expect(untested).toEqual(UNTESTED);
  });
});
