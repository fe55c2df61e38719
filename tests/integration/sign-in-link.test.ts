import { describe, expect, onTestFinished, test } from 'vitest';
import { AccessStage, type Headers } from '../support/access-stage';

describe('a sign-in link', () => {
  const PERSON = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  const LAN = { INTERLUDE_ALLOWED_HOSTS: 'interlude.lan' };
  const lan = { host: 'interlude.lan:4319' };
  const tls = { ...lan, 'x-forwarded-proto': 'https' };

  async function opened(headers: Headers) {
    const named = await AccessStage.start({ env: LAN });
    onTestFinished(() => named.close());
    const code = await named.code();
    const response = await named.send(`/sign-in?token=${code}&next=/inbox`, { as: {}, headers });
    return { named, code, answer: response, text: await response.text() };
  }

  test.each<[string, Headers]>([
    ['a person who typed it', PERSON],
    ['a person who typed it, over TLS', { ...PERSON, ...tls }],
    ['a program on this machine', {}],
    ['a program that sends Sec-Fetch-Mode only', { 'sec-fetch-mode': 'cors' }],
  ])('signs in at once %s', async (_, headers) => {
    const { answer: response } = await opened(headers);
    expect([response.status, response.headers.get('location')]).toEqual([303, '/inbox']);
    expect(response.headers.get('set-cookie')).toContain('interlude=ils_');
  });

  const AHEAD = { 'sec-purpose': 'prefetch;prerender' };
  test.each<[string, Headers, number]>([
    ['a visitor from another site', { ...PERSON, 'sec-fetch-site': 'cross-site' }, 200],
    ['a visitor from another port', { ...PERSON, 'sec-fetch-site': 'same-site' }, 200],
    ['a visitor from a page of ours, where agents write links', { ...PERSON, 'sec-fetch-site': 'same-origin' }, 200],
    ['a frame', { ...PERSON, 'sec-fetch-dest': 'iframe' }, 200],
    ['an image', { ...PERSON, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 200],
    ['a prefetching browser', { ...PERSON, ...AHEAD }, 503],
    ['an older prefetching browser', { ...PERSON, purpose: 'prefetch' }, 503],
    ['a client without fetch metadata, under a network name', lan, 200],
    ['a client without fetch metadata, over TLS', tls, 200],
  ])('asks before it signs in %s, and stays valid until confirmed', async (_, headers, status) => {
    const { named, code, answer: response, text } = await opened(headers);
    expect([response.status, response.headers.get('set-cookie'), response.headers.get('location')]).toEqual([
      status,
      null,
      null,
    ]);
    expect(response.headers.get('content-security-policy')).toContain("form-action 'self'; frame-ancestors 'none'");
    expect(text).toContain('“Local admin”');
    expect([...text.matchAll(/name="(\w+)" value="([^"]+)"/g)].map(([, ...pair]) => pair)).toEqual([
      ['token', code],
      ['next', '/inbox'],
    ]);
    const form = new TextEncoder().encode(`token=${code}&next=%2Finbox`);
    const own = { ...PERSON, 'sec-fetch-site': 'same-origin' };
    const entered = await named.send('/sign-in', { method: 'POST', as: {}, body: form, headers: own });
    expect(entered.headers.get('set-cookie')).toContain('interlude=ils_');
  });

  test('asks with the same page whether valid or made up, and names the user who would be signed out', async () => {
    const headers = { ...PERSON, 'sec-fetch-site': 'cross-site' };
    const { named, code, text } = await opened(headers);
    const madeUp = `ilc_${'x'.repeat(43)}`;
    const other = await named.send(`/sign-in?token=${madeUp}&next=/inbox`, { as: {}, headers });
    expect((await other.text()).replace(madeUp, code)).toBe(text);
    const { cookie = '' } = await named.browser();
    const known = await named.send(`/sign-in?token=${code}`, { as: { cookie }, headers });
    expect(await known.text()).toContain('This signs out “Local admin”');
    const { secret } = await named.credential({ kind: 'session', role: 'viewer', name: 'x” now. ″y', idleMs: 60_000 });
    const quoting = await named.send(`/sign-in?token=${code}`, { as: { cookie: `interlude=${secret}` }, headers });
    expect((await quoting.text()).replaceAll('&quot;', '"')).toContain('This signs out “x" now. "y”');
  });

  test.each<[string, Headers, number]>([
    ['our own page', { origin: 'http://interlude.lan:4319', ...lan }, 303],
    ['a program', {}, 303],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['another site over plain HTTP', { origin: 'http://elsewhere.example', ...lan }, 403],
    ['a page that hides its origin', { origin: 'null', ...lan }, 403],
  ])('accepts its form from its own pages and programs only: %s', async (_, headers, status) => {
    const named = await AccessStage.start({ env: LAN });
    onTestFinished(() => named.close());
    const body = new TextEncoder().encode(`token=${await named.code()}`);
    const response = await named.send('/sign-in', { method: 'POST', as: {}, body, headers });
    expect([response.status, response.headers.get('set-cookie') !== null]).toEqual([status, status === 303]);
  });
});
