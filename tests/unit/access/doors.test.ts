import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sessionCookie, sessionSecret } from '@/lib/server/access/session-cookie';
import { nextPath } from '@/lib/server/access/sign-in-pages';
import { AccessStage } from '../../support/access-stage';

describe('a host name', () => {
  let stage: AccessStage;
  beforeAll(async () => {
    stage = await AccessStage.start();
  });
  afterAll(() => stage.close());

  test.each([
    ['127.0.0.1:4319', 200],
    ['localhost:4319', 200],
    ['[::1]:4319', 200],
    ['rebound.example:4319', 421],
    ['localhost.evil.example', 421],
  ])('%s is answered %i, whatever the token', async (host, status) => {
    expect(await stage.status('/me', { headers: { host } })).toBe(status);
  });
});

describe('the session cookie', () => {
  const over = (proto: string, cookie: string) =>
    sessionSecret(new Headers({ cookie, 'x-forwarded-proto': proto }), '');

  test('over TLS is only the one that no other host can set', () => {
    expect(over('https', 'interlude=plain; __Host-interlude=secure')).toBe('secure');
    expect(over('https', 'interlude=plain')).toBeNull();
    expect(over('http', 'interlude=plain')).toBe('plain');
  });

  test('is hidden from scripts and other sites', () => {
    expect(sessionCookie('secret', true, '')).toMatch(
      /^__Host-interlude=secret; Path=\/; HttpOnly; SameSite=Lax; .*Secure$/,
    );
    expect(sessionCookie('secret', false, '')).toMatch(
      /^interlude=secret; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+$/,
    );
  });
});

describe('nextPath', () => {
  test.each([
    ['/sessions/s1?at=5#end', '/sessions/s1?at=5#end'],
    [null, '/'],
    ['https://evil.example/', '/'],
    ['//evil.example/', '/'],
    ['/\\evil.example/', '/'],
    ['/\t/evil.example/', '/'],
    ['/.//evil.example/', '/'],
    ['javascript:alert(1)', '/'],
  ])('maps %j to %j', (next, path) => {
    expect(nextPath(next)).toBe(path);
  });

  test('drops a path too long for a header, escaped or not', () => {
    expect(nextPath(`/${'x'.repeat(1_000)}`)).toHaveLength(1_001);
    for (const long of ['x'.repeat(3_000), '"'.repeat(700)]) expect(nextPath(`/${long}`)).toBe('/');
  });
});
