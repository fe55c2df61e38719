import { expect, test } from 'vitest';
import { clientAddress, proxyTrust } from '@/lib/server/access/client-address';

const keyOf = (forwarded: string, env: Record<string, string> = {}) =>
  clientAddress(new Headers({ 'x-forwarded-for': forwarded }), proxyTrust(env));
const behind = (INTERLUDE_TRUSTED_PROXY: string) => ({ INTERLUDE_TRUSTED_PROXY });

test('uses the address of the connection, whatever the client claims', () => {
  const own = keyOf('203.0.113.5');
  expect(own).not.toBe('');
  for (const claimed of ['198.51.100.9', '10.0.0.1', 'unknown', '203.0.113.6, 127.0.0.1']) {
    expect([claimed, keyOf(`${claimed}, 203.0.113.5`)]).toEqual([claimed, own]);
  }
  expect(keyOf('203.0.113.6')).not.toBe(own);
});

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['10.0.0.0/8', '10.9.8.7'],
  ['192.0.2.1, 10.0.0.0/8', '10.9.8.7'],
  ['::1', '::1'],
  ['fd00::/8', 'fd12:3456::9'],
  ['127.0.0.1', '::ffff:127.0.0.1'],
])('uses the address that the trusted proxy %s reported', (trusted, proxy) => {
  expect(keyOf(`198.51.100.9, 203.0.113.5, ${proxy}`, behind(trusted))).toBe(keyOf('203.0.113.5'));
});

test('follows a chain of trusted proxies up to the first untrusted one', () => {
  const env = behind('10.0.0.0/8');
  expect(keyOf('198.51.100.9, 203.0.113.5, 10.0.0.2, 10.0.0.1', env)).toBe(keyOf('203.0.113.5'));
  expect(keyOf('198.51.100.9, 11.0.0.1', env)).toBe(keyOf('11.0.0.1'));
  expect(keyOf('10.0.0.3, 10.0.0.1', env)).toBe(keyOf('10.0.0.3'));
  expect(keyOf('not an address, 10.0.0.1', env)).toBe(keyOf('10.0.0.1'));
});

test('is the same for every address of a /48, with port, zone or any spelling', () => {
  expect(keyOf('2001:db8:1::1')).toBe(keyOf('2001:DB8:0001:ffff:ffff:ffff:ffff:ffff'));
  expect(keyOf('2001:db8:1::1')).not.toBe(keyOf('2001:db8:2::1'));
  expect(keyOf('[2001:db8:0:1::1]:4319')).toBe(keyOf('2001:db8:0:1::1%eth0'));
  expect(keyOf('203.0.113.5:4319')).toBe(keyOf('::ffff:203.0.113.5'));
});

test('reads x-vercel-forwarded-for on Vercel', () => {
  const headers = new Headers({ 'x-forwarded-for': '198.51.100.9', 'x-vercel-forwarded-for': '203.0.113.5' });
  expect(clientAddress(headers, proxyTrust({ VERCEL: '1' }))).toBe(keyOf('203.0.113.5'));
  expect(clientAddress(headers, proxyTrust({}))).toBe(keyOf('198.51.100.9'));
});

test.each(['', '1', 'unknown', '256.0.0.1', '1.2.3', '1:2:3', '::g'])('is unknown for %j', (forwarded) => {
  expect(keyOf(forwarded)).toBe('');
});

test.each(['proxy.example', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '*'])(
  'rejects the setting %j by name',
  (setting) => {
    expect(() => proxyTrust(behind(setting))).toThrow(/INTERLUDE_TRUSTED_PROXY: .* is not an address or CIDR range/);
  },
);
