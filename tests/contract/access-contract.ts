import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorOf } from '../support/ingest-target';
import { apiPaths, type ServerTarget } from '../support/server-target';

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];
const OPEN = ['/api/v1/healthz', '/api/v1/readyz'];

/** Which requests each credential admits. */
export function describeAccessContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`access, ${name}`, () => {
    let target: ServerTarget;
    const host = () => new URL(target.origin).host;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());

    async function signIn(headers: Record<string, string> = {}, query = ''): Promise<Response> {
      return target.send(`/sign-in?token=${target.token}${query}`, { headers });
    }
    async function cookie(): Promise<string> {
      return (await signIn()).headers.get('set-cookie')?.split(';')[0] ?? '';
    }

    test('refuses every route and method without a sign-in, and names the header to send', async () => {
      for (const path of apiPaths().filter((path) => !OPEN.includes(path))) {
        for (const method of METHODS) {
          const response = await target.send(path, { method });
          expect([path, method, response.status]).toEqual([path, method, 401]);
          expect(response.headers.get('www-authenticate')).toContain('Bearer');
          if (method === 'HEAD') continue;
          const error = await errorOf(response);
          expect(error.code).toBe('unauthenticated');
          expect(error.message).toContain('Authorization: Bearer');
        }
      }
    });

    test('answers health checks without a credential', async () => {
      for (const path of ['/healthz', '/readyz', ...OPEN]) {
        expect([path, (await target.send(path)).status]).toEqual([path, 200]);
      }
    });

    test('accepts the bearer token with the scheme in any case', async () => {
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        const response = await target.send('/api/v1/sessions', {
          headers: { authorization: `${scheme} ${target.token}` },
        });
        expect(response.status).toBe(200);
      }
    });

    test('refuses any other credential', async () => {
      // The case of one letter is swapped: a token may have no lowercase letter.
      const otherCase = target.token.replace(/[a-z]/i, (letter) =>
        letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
      );
      expect(otherCase).not.toBe(target.token);
      const wrong = [
        'Bearer',
        `Bearer ${target.token}x`,
        `Bearer ${target.token.slice(0, -1)}`,
        `Bearer ${otherCase}`,
        `Basic ${target.token}`,
        target.token,
        '',
      ];
      for (const authorization of wrong) {
        const response = await target.send('/api/v1/sessions', { headers: { authorization } });
        expect([authorization, response.status]).toEqual([authorization, 401]);
      }
    });

    test('refuses a wrong token beside a valid cookie', async () => {
      const headers = { cookie: await cookie(), authorization: 'Bearer not-the-token-of-this-server' };
      expect((await target.send('/api/v1/sessions', { headers })).status).toBe(401);
    });

    test('answers 405 with the allowed methods and 404 for unknown paths', async () => {
      const headers = { authorization: `Bearer ${target.token}` };
      for (const method of ['HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        const response = await target.send('/api/v1/sessions', { method, headers });
        expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'GET']);
        if (method !== 'HEAD') expect((await errorOf(response)).code).toBe('method_not_allowed');
      }
      expect((await target.send('/api/v1/events', { headers })).headers.get('allow')).toBe('POST');
      for (const path of ['/api', '/api/v1', '/api/v1/nothing', '/api/v2/sessions', '/api/v1/sessions/a/b/c/d']) {
        const response = await target.get(path);
        expect([path, response.status]).toEqual([path, 404]);
        expect((await errorOf(response)).code).toBe('not_found');
      }
    });

    describe('the sign-in link', () => {
      test('sets an HttpOnly cookie and redirects to the start page or a path of this server', async () => {
        const response = await signIn();
        expect(response.status).toBe(303);
        expect(response.headers.get('location')).toBe('/');
        const attributes = response.headers.get('set-cookie')?.split('; ').slice(1);
        expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Lax', expect.stringMatching(/^Max-Age=\d+$/)]);
        const deep = await signIn({}, `&next=${encodeURIComponent('/sessions/a%2Fb?turn=1#t')}`);
        expect(deep.headers.get('location')).toBe('/sessions/a%2Fb?turn=1#t');
      });

      test('marks the cookie Secure over TLS', async () => {
        const response = await signIn({ 'x-forwarded-proto': 'https' });
        expect(response.headers.get('set-cookie')).toContain('; Secure');
      });

      test('never redirects to another host', async () => {
        const evil = [
          '//evil.example',
          '/\\evil.example',
          '\\\\evil.example',
          'https://evil.example/',
          '/\t/evil.example',
        ];
        const more = [
          'javascript:alert(1)',
          '/.//evil.example',
          'evil.example',
          '/%2e%2e//evil.example',
          '///evil.example',
        ];
        for (const next of [...evil, ...more]) {
          const response = await signIn({}, `&next=${encodeURIComponent(next)}`);
          const location = new URL(response.headers.get('location') ?? '', target.origin);
          expect([next, location.origin]).toEqual([next, target.origin]);
          expect(response.headers.get('location')).not.toMatch(/^[/\\]{2}/);
        }
      });

      test('sets no cookie for a wrong token and redirects to the sign-in page', async () => {
        const response = await target.send('/sign-in?token=wrong-token-of-some-length&next=/inbox');
        expect(response.status).toBe(303);
        expect(response.headers.get('location')).toBe('/signed-out?reason=wrong-token&next=%2Finbox');
        expect(response.headers.get('set-cookie')).toBeNull();
      });

      test('redirects to the sign-in page without a token, unless the visitor is signed in', async () => {
        expect((await target.send('/sign-in')).headers.get('location')).toBe('/signed-out');
        const again = await target.send('/sign-in?next=/inbox', { headers: { cookie: await cookie() } });
        expect(again.headers.get('location')).toBe('/inbox');
      });

      test('accepts the token from a form, and refuses an oversized form', async () => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        const body = new URLSearchParams({ token: ` ${target.token} `, next: '/inbox' }).toString();
        const response = await target.send('/sign-in', { method: 'POST', headers, body });
        expect(response.headers.get('location')).toBe('/inbox');
        expect(response.headers.get('set-cookie')).toContain('interlude=');
        const endless = await target.send('/sign-in', {
          method: 'POST',
          headers,
          body: `token=${'x'.repeat(100_000)}`,
        });
        expect(endless.status).toBe(413);
      });
    });

    describe('the cookie', () => {
      test('opens every route that the token opens to the dashboard’s own pages', async () => {
        const own = { 'sec-fetch-site': 'same-origin' };
        const among = `theme=dark; ${await cookie()}; other=1`;
        for (const value of [await cookie(), among]) {
          const response = await target.send('/api/v1/sessions', { headers: { ...own, cookie: value } });
          expect(response.status).toBe(200);
        }
      });

      test('opens no route reserved for runners, and names the credential that does', async () => {
        const headers = { cookie: await cookie(), 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
        const runners: [string, string][] = [
          ['POST', '/api/v1/events'],
          ['GET', '/api/v1/agents/a/commands?runner=r&startedAt=9999999999999'],
          ['POST', '/api/v1/agents/a/commands/c/ack'],
        ];
        for (const [method, path] of runners) {
          const response = await target.send(path, { method, headers, body: method === 'POST' ? '{}' : undefined });
          expect([path, response.status]).toEqual([path, 401]);
          expect(await errorOf(response)).toMatchObject({
            code: 'unauthenticated',
            message: expect.stringMatching(/for runners.*Authorization: Bearer/),
          });
        }
      });

      test('differs from the token and is no bearer token', async () => {
        const value = (await cookie()).replace('interlude=', '');
        expect(value).not.toContain(target.token);
        const response = await target.send('/api/v1/sessions', { headers: { authorization: `Bearer ${value}` } });
        expect(response.status).toBe(401);
      });

      test('opens nothing when forged, altered or empty', async () => {
        const [expires = '', digest = ''] = (await cookie()).replace('interlude=', '').split('.');
        const values = [
          '',
          target.token,
          `${expires}.`,
          `.${digest}`,
          `${Number(expires) + 1}.${digest}`,
          `${expires}.${digest}.x`,
          `1.${digest}`,
        ];
        for (const value of values) {
          const response = await target.send('/api/v1/sessions', { headers: { cookie: `interlude=${value}` } });
          expect([value, response.status]).toEqual([value, 401]);
        }
      });

      test('permits writes from the dashboard’s own pages only, with any method', async () => {
        const ask = async (method: string, path: string, headers: Record<string, string>) => {
          const body = method === 'GET' ? undefined : '{}';
          const all = { cookie: await cookie(), 'content-type': 'application/json', ...headers };
          const response = await target.send(path, { method, headers: all, body });
          const isRefused = response.status === 403 && (await errorOf(response)).code === 'cross_origin';
          await response.body?.cancel().catch(() => {});
          return !isRefused;
        };
        const requests: [string, string][] = [
          ['POST', '/api/v1/sessions/nowhere/messages'],
          ['PUT', '/api/v1/agents/nowhere/log-level'],
          ['GET', '/api/v1/sessions'],
          ['GET', '/api/v1/stream?topic=fleet'],
          ['GET', '/api/v1/agents/nowhere/logs/download'],
          ['GET', '/api/nothing/here'],
        ];
        const page = { 'x-interlude-page': '1' };
        for (const [method, path] of requests) {
          const isAdmitted = (headers: Record<string, string>) => ask(method, path, headers);
          const isRead = method === 'GET';
          const table: [Record<string, string>, boolean][] = [
            [{ 'sec-fetch-site': 'same-origin' }, true],
            [{ origin: target.origin }, true],
            // Over plain HTTP to a host other than localhost, browsers don't send Sec-Fetch-Site.
            [page, true],
            [{ referer: `${target.origin}/agents/a/logs` }, isRead],
            // Entered in the address bar.
            [{ 'sec-fetch-site': 'none' }, isRead],
            [{}, false],
            [{ origin: 'null' }, false],
            [{ origin: 'http://evil.example' }, false],
            [{ origin: `http://${host()}.evil.example` }, false],
            [{ origin: 'http://127.0.0.1:1' }, false],
            [{ origin: target.origin, 'sec-fetch-site': 'cross-site' }, false],
            [{ 'sec-fetch-site': 'same-site' }, false],
            [{ 'sec-fetch-site': 'same-site', ...page }, false],
            [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, false],
            [{ origin: 'http://127.0.0.1:1', ...page }, false],
            [{ referer: 'http://127.0.0.1:1/' }, false],
            [{ referer: `http://evil.example/${target.origin}` }, false],
          ];
          for (const [headers, expected] of table) {
            expect([method, path, headers, await isAdmitted(headers)]).toEqual([method, path, headers, expected]);
          }
        }
      });

      test('is revoked by a sign-out, which another site can’t request', async () => {
        const headers = { cookie: await cookie() };
        const foreign = { ...headers, origin: 'http://evil.example' };
        expect((await target.send('/sign-out', { method: 'POST', headers: foreign })).status).toBe(403);
        const own = { ...headers, origin: target.origin, 'content-type': 'application/x-www-form-urlencoded' };
        const leave = (principal: string) =>
          target.send('/sign-out', { method: 'POST', headers: own, body: `principal=${principal}` });
        const stale = await leave('the-last-person');
        expect([stale.status, stale.headers.get('set-cookie')]).toEqual([409, null]);
        const response = await leave('local');
        expect(response.status).toBe(303);
        expect(response.headers.get('location')).toBe('/signed-out?reason=ended');
        expect(response.headers.get('set-cookie')).toMatch(/^interlude=; .*Max-Age=0/);
        expect(response.headers.get('clear-site-data')).toBe('"storage"');
      });
    });

    describe('the Host header', () => {
      const hosts = [
        'evil.example',
        'localhost.evil.example',
        '127.0.0.1.evil.example',
        '10.0.0.1',
        '[::2]',
        'evil.example:80',
      ];

      test('a request for an unknown host is refused with 421 before credentials are checked', async () => {
        for (const wrong of hosts) {
          for (const path of ['/api/v1/sessions', '/api/v1/stream?topic=fleet', `/sign-in?token=${target.token}`]) {
            const response = await target.get(path, { host: wrong });
            expect([wrong, path, response.status]).toEqual([wrong, path, 421]);
            expect(response.headers.get('set-cookie')).toBeNull();
            expect((await errorOf(response)).code).toBe('misdirected_host');
          }
        }
      });

      test('may be any loopback name with any port', async () => {
        for (const hostName of ['localhost', 'LOCALHOST:1', '127.0.0.1:9', '[::1]:4319', 'localhost.']) {
          expect([hostName, (await target.get('/api/v1/sessions', { host: hostName })).status]).toEqual([
            hostName,
            200,
          ]);
        }
      });
    });
  });
}
