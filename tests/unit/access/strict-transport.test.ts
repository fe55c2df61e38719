import { expect, test } from 'vitest';
import { isStrict } from '@/lib/server/access/response-headers.mjs';
import config from '@/next.config';

const HOSTS = [
  'interlude.example.com',
  'a.localhost.example',
  '192.0.2.7',
  'localhost',
  'x.localhost',
  '127.0.0.1',
  '[::1]',
];
const FORWARDED = ['https', 'https, http', 'http', 'http, https', ''];

/** Matches like Next's `has`: whole values, and a host without its port. */
function matches(rule: { has?: { type: string; key?: string; value?: string }[] }, headers: Record<string, string>) {
  return (rule.has ?? []).every(({ type, key, value }) => {
    const given = type === 'host' ? (headers.host ?? '').split(':', 1)[0] : headers[key ?? ''];
    return new RegExp(`^${value}$`).test(given ?? '');
  });
}

test('sets HSTS on the same requests as the front door', async () => {
  const rules = ((await config.headers?.()) ?? []).filter(({ headers }) =>
    headers.some(({ key }) => key === 'strict-transport-security'),
  );
  expect(rules.map(({ source }) => source)).toEqual(['/', '/:path*']);
  const said: boolean[] = [];
  for (const host of HOSTS) {
    for (const port of ['', ':8443']) {
      for (const forwarded of FORWARDED) {
        const headers = { host: `${host}${port}`, ...(forwarded !== '' && { 'x-forwarded-proto': forwarded }) };
        const expected = isStrict({ headers, socket: {} as never });
        said.push(expected);
        for (const rule of rules) expect([headers, matches(rule, headers)]).toEqual([headers, expected]);
      }
    }
  }
  expect(new Set(said).size).toBe(2);
});
