import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const TESTS = fileURLToPath(new URL('..', import.meta.url));

/**
 * Files in a worker share modules: a mock affects other files, or is too late for a module that one of them has
 * imported.
 */
test('no test file mocks a module', () => {
  const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((path) => /\.test\.tsx?$/.test(path));
  const mocking = files.filter((path) => /vi\.(mock|doMock)\(/.test(readFileSync(`${TESTS}/${path}`, 'utf8')));
  expect(mocking).toEqual([]);
});
