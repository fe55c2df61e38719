import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const TESTS = fileURLToPath(new URL('..', import.meta.url));

/** The files of a worker share modules: a mock reaches other files, or comes after one of them has imported the module. */
test('test files mock no module', () => {
  const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((path) => /\.test\.tsx?$/.test(path));
  const mocking = files.filter((path) => /vi\.(mock|doMock)\(/.test(readFileSync(`${TESTS}/${path}`, 'utf8')));
  expect(mocking).toEqual([]);
});
