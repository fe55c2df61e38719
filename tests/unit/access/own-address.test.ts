import { expect, test } from 'vitest';
import { ownAddress } from '@/lib/access/own-address';

const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';
const SAFARI = 'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15';

function of(host: string, headers: Record<string, string> = {}, localName: string | null = 'interlude.localhost') {
  const sent = { host, 'user-agent': CHROME, 'sec-fetch-mode': 'navigate', ...headers };
  return ownAddress(new Request('http://localhost', { headers: sent }), { localName });
}

test('a browser at a loopback address has one of our own, on the same port', () => {
  expect(of('127.0.0.1:4319')).toBe('http://interlude.localhost:4319');
  expect(of('localhost')).toBe('http://interlude.localhost');
  expect(of('[::1]:80')).toBe('http://interlude.localhost:80');
});

test('no other name has one, nor where there is none, over TLS, or for who may not know such names', () => {
  expect(of('interlude.localhost:4319')).toBeNull();
  expect(of('127.0.0.1.evil.example')).toBeNull();
  expect(of('127.0.0.1:4319', {}, null)).toBeNull();
  expect(of('127.0.0.1:4319', { 'x-forwarded-proto': 'https' })).toBeNull();
  expect(of('127.0.0.1:4319', { 'user-agent': SAFARI })).toBeNull();
  expect(of('127.0.0.1:4319', { 'sec-fetch-mode': 'cors' })).toBeNull();
});
