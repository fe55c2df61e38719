import { expect, test } from 'vitest';
import { localNameOrigin } from '@/lib/server/access/session-cookie';

const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';
const SAFARI = 'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15';

function of(
  host: string,
  { userAgent = CHROME, localName = 'interlude.localhost' as string | null, isSecure = false } = {},
) {
  return localNameOrigin(new Headers({ host, 'user-agent': userAgent }), { localName, isSecure });
}

test('replaces a loopback address by the local name on the same port', () => {
  expect(of('127.0.0.1:4319')).toBe('http://interlude.localhost:4319');
  expect(of('localhost')).toBe('http://interlude.localhost');
  expect(of('[::1]:80')).toBe('http://interlude.localhost:80');
});

test('keeps other names, and any without a local name, over TLS, or in a browser that can’t resolve it', () => {
  expect(of('interlude.localhost:4319')).toBeNull();
  expect(of('dash.example')).toBeNull();
  expect(of('127.0.0.1.evil.example')).toBeNull();
  expect(of('127.0.0.1:4319', { localName: null })).toBeNull();
  expect(of('127.0.0.1:4319', { isSecure: true })).toBeNull();
  expect(of('127.0.0.1:4319', { userAgent: SAFARI })).toBeNull();
});
