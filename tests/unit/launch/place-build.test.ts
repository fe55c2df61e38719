import { expect, test } from 'vitest';
import { withBasePath } from '@/lib/launch/build.mjs';
import { buildFolder } from '@/lib/launch/paths.mjs';

const BASE = '/tools/inter.lude';

test.each([
  ['code', 'let a="/__interlude_base__";b(`/__interlude_base__/x`)', `let a="${BASE}";b(\`${BASE}/x\`)`],
  ['a pattern', String.raw`/^\/__interlude_base__(?:\/)?$/`, String.raw`/^\/tools\/inter.lude(?:\/)?$/`],
  [
    'a pattern in a text',
    String.raw`{"regexp":"^(?:\\/(x))?\\/__interlude_base__\\/y$"}`,
    String.raw`{"regexp":"^(?:\\/(x))?\\/tools\\/inter.lude\\/y$"}`,
  ],
  [
    'the folder of the build',
    `{"distDir":"${buildFolder('/__interlude_base__')}","basePath":"/__interlude_base__"}`,
    `{"distDir":".next-beneath/tools+inter.lude","basePath":"${BASE}"}`,
  ],
  ['anything else', 'a //_interlude_base__ \\/ b', 'a //_interlude_base__ \\/ b'],
])('replaces the placeholder with a base path in %s', (_where, before, after) => {
  expect(withBasePath(before, BASE)).toBe(after);
  expect(withBasePath(after, BASE)).toBe(after);
});
