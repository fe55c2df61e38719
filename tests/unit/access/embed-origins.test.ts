import { expect, test } from 'vitest';
import { embedOrigins, isEmbedPage } from '@/lib/server/access/embeds';

const of = (text: string | undefined) => embedOrigins({ INTERLUDE_EMBED_ORIGINS: text });

test('is empty by default', () => {
  expect(of(undefined)).toEqual([]);
  expect(of(' , ')).toEqual([]);
});

test('normalizes origins as browsers do, without duplicates', () => {
  expect(of('https://Console.test, http://a.test:8080,https://console.test:443')).toEqual([
    'https://console.test',
    'http://a.test:8080',
  ]);
});

test.each([
  '*',
  'https://*.acme.test',
  'console.test',
  'https://console.test/path',
  'https://me@console.test',
  'https://console.test?x',
  "https://a.test 'self'",
  'data:text/html,x',
  'null',
])('rejects %s', (named) => {
  expect(() => of(named)).toThrow('which is not an origin');
});

test.each(['/embed/sessions/a%2Fb', '/embed/agents/x/logs', '/embed/fleet'])('%s is an embed page', (path) => {
  expect(isEmbedPage(path)).toBe(true);
});

test.each([
  '/embed',
  '/embed/',
  '/embed/sessions',
  '/embed/sessions/a/b',
  '/embed/fleet/',
  '/sessions/embed/fleet',
  '/embedded',
])('%s is not an embed page', (path) => {
  expect(isEmbedPage(path)).toBe(false);
});
