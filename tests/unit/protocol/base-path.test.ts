import {
  basePathSetting,
  prependBasePath,
  stripBasePath,
  withBasePath,
  withoutBasePath,
} from '@interlude/protocol/base-path.mjs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

describe('basePathSetting', () => {
  test.each([undefined, '', '/'])('returns no base path for %j', (setting) => {
    expect(basePathSetting(setting)).toBe('');
  });

  test.each(['/interlude', '/tools/interlude', '/A-1.b_c~d', '/...', '/a/.b'])('accepts %s', (setting) => {
    expect(basePathSetting(setting)).toBe(setting);
  });

  test.each([
    ' ',
    'interlude',
    '/interlude/',
    '//interlude',
    '/a//b',
    '/.',
    '/..',
    '/../a',
    '/a/../b',
    '/a/.',
    '/a b',
    '/a\n',
    '/a?b',
    '/a#b',
    '/%2e%2e',
    '/ä',
    '/a;b',
    '/a"b',
    '\\a',
    'https://host/a',
    `/${'a'.repeat(200)}`,
  ])('rejects %j', (setting) => {
    expect(() => basePathSetting(setting)).toThrow(/^INTERLUDE_BASE_PATH is ".*set a path such as \/interlude/);
  });
});

describe('withBasePath and withoutBasePath', () => {
  test.each([
    ['/', '/interlude'],
    ['/?q=1', '/interlude?q=1'],
    ['/#top', '/interlude#top'],
    ['/sessions/s1?at=/', '/interlude/sessions/s1?at=/'],
    ['/interlude', '/interlude/interlude'],
  ])('map %s to %s and back', (path, asked) => {
    expect(prependBasePath(path, '/interlude')).toBe(asked);
    expect(stripBasePath(asked, '/interlude')).toBe(path);
    expect([withBasePath(path), withoutBasePath(path)]).toEqual([path, path]);
  });

  test.each(['/', '/interludes', '/interlud', '/Interlude', '/x/interlude', '/interlude%2Fx', 'interlude'])(
    '%s is none',
    (asked) => {
      expect(stripBasePath(asked, '/interlude')).toBeNull();
    },
  );

  test('are inverse for every base path', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9_~-]{1,8}$/);
    const base = fc.array(part, { maxLength: 3 }).map((parts) => parts.map((one) => `/${one}`).join(''));
    const rest = fc.stringMatching(/^[\w/.%~?#=-]{0,20}$/).map((text) => `/${text}`);
    fc.assert(
      fc.property(base, rest, (basePath, path) => {
        expect(stripBasePath(prependBasePath(path, basePath), basePath)).toBe(path);
      }),
    );
  });
});
