import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NextRequest } from 'next/server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createServer, type Server } from '@/lib/server/create-server';
import { setServer } from '@/lib/server/process-server.mjs';
import { config, proxy } from '@/proxy';

const TOKEN = 'a-token-of-enough-characters';
const ORIGIN = 'http://127.0.0.1:4319';

let server: Server;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'interlude-proxy-'));
  vi.stubEnv('INTERLUDE_TOKEN', TOKEN);
  server = createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: folder });
  setServer(server);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server.close();
  rmSync(folder, { recursive: true });
});

async function visit(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return proxy(new NextRequest(`${ORIGIN}${path}`, { headers: { host: '127.0.0.1:4319', ...headers } }));
}
const signedIn = async () => {
  const request = new Request(`${ORIGIN}/sign-in?token=${TOKEN}`, { headers: { host: '127.0.0.1:4319' } });
  return { cookie: (await server.handle(request)).headers.get('set-cookie')?.split(';')[0] ?? '' };
};
const nonceOf = (response: Response) =>
  /script-src 'self' 'nonce-([^']+)' 'strict-dynamic'/.exec(response.headers.get('content-security-policy') ?? '')?.[1];

const isMatched = (path: string) => config.matcher.some((source) => new RegExp(`^${source}$`).test(path));

describe('the proxy', () => {
  test('redirects a visitor without a sign-in to the sign-in page, with a way back', async () => {
    const response = await visit('/sessions/a%2Fb?turn=1');
    expect(response.status).toBe(307);
    const location = new URL(response.headers.get('location') ?? '', ORIGIN);
    expect(location.pathname).toBe('/signed-out');
    expect(location.searchParams.get('next')).toBe('/sessions/a%2Fb?turn=1');
  });

  test.each([
    ['POST', {}, 405],
    ['OPTIONS', {}, 405],
    ['POST', { 'next-action': 'abc' }, 404],
    ['GET', { 'next-action': 'abc' }, 404],
  ])('answers %s with %j by %i, without Next', async (method, headers, status) => {
    for (const path of ['/', '/signed-out', '/nowhere', '/_next/image']) {
      expect(isMatched(path)).toBe(true);
      const all = { host: '127.0.0.1:4319', ...headers };
      const response = await proxy(new NextRequest(`${ORIGIN}${path}`, { method, headers: all }));
      expect([path, response.status, response.headers.get('x-middleware-next')]).toEqual([path, status, null]);
    }
  });

  test('names a refused setting', async () => {
    setServer(createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_REDACT_ROLES: 'admin' }));
    const response = await visit('/');
    setServer(server);
    expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('INTERLUDE_REDACT_ROLES')]);
  });

  test('does not repeat a very long URL in a header', async () => {
    const response = await visit(`/sessions/${'x'.repeat(3_000)}`);
    expect(response.headers.get('location')).toMatch(/\/signed-out$/);
  });

  test('refuses a page URL of more than 7,000 characters', async () => {
    expect((await visit(`/sessions/${'x'.repeat(9_000)}`)).status).toBe(414);
  });

  test('redirects no request for a disabled service of Next', async () => {
    for (const headers of [{}, await signedIn()]) expect((await visit('/_next/image?url=x', headers)).status).toBe(404);
  });

  test('opens no page for a bearer token', async () => {
    expect((await visit('/', { authorization: `Bearer ${TOKEN}` })).status).toBe(307);
  });

  test('passes a signed-in visitor with a content policy and its nonce', async () => {
    const response = await visit('/', await signedIn());
    expect(response.headers.get('x-middleware-next')).toBe('1');
    const nonce = nonceOf(response);
    expect(nonce).toMatch(/^[A-Za-z0-9+/]{22}==$/);
    expect(response.headers.get('x-middleware-request-x-nonce')).toBe(nonce);
    expect(response.headers.get('x-middleware-request-content-security-policy')).toContain(`'nonce-${nonce}'`);
  });

  test('uses a new nonce for each response', async () => {
    const headers = await signedIn();
    expect(nonceOf(await visit('/', headers))).not.toBe(nonceOf(await visit('/', headers)));
  });

  test('leaves agents’ output nothing to run, load, frame or send to', async () => {
    const policy = (await visit('/', await signedIn())).headers.get('content-security-policy') ?? '';
    const directives = Object.fromEntries(
      policy.split('; ').map((directive): [string, string] => {
        const [name = '', ...sources] = directive.split(' ');
        return [name, sources.join(' ')];
      }),
    );
    expect(directives['script-src']).not.toMatch(/unsafe|\*|https?:|data:|blob:/);
    expect(directives['style-src']).not.toContain('unsafe');
    expect(directives).toMatchObject({
      'default-src': "'self'",
      'connect-src': "'self'",
      'img-src': "'self' data: blob:",
      'object-src': "'none'",
      'base-uri': "'none'",
      'form-action': "'self'",
      'frame-ancestors': "'none'",
    });
  });

  test('passes everyone to the sign-in page', async () => {
    expect((await visit('/signed-out?next=/')).headers.get('x-middleware-next')).toBe('1');
  });

  describe('an embed page', () => {
    const framedBy = (response: Response) =>
      /frame-ancestors (.*)$/.exec(response.headers.get('content-security-policy') ?? '')?.[1];

    test('passes everyone, and may be framed by registered origins only', async () => {
      vi.stubEnv('INTERLUDE_EMBED_ORIGINS', 'https://console.test, https://other.test:8443');
      const response = await visit('/embed/sessions/a');
      vi.stubEnv('INTERLUDE_EMBED_ORIGINS', undefined);
      expect(response.headers.get('x-middleware-next')).toBe('1');
      expect(framedBy(response)).toBe('https://console.test https://other.test:8443');
      expect(response.headers.get('x-middleware-request-x-interlude-embed')).toBe('1');
    });

    test('may not be framed if no origin is registered', async () => {
      expect(framedBy(await visit('/embed/fleet'))).toBe("'none'");
    });

    test('is only recognized by its path, not by headers or similar names', async () => {
      const response = await visit('/', { ...(await signedIn()), 'x-interlude-embed': '1' });
      expect(response.headers.get('x-middleware-request-x-interlude-embed')).toBeNull();
      expect(framedBy(response)).toBe("'none'");
      expect((await visit('/embed/other')).status).toBe(307);
    });
  });

  test('refuses another host name', async () => {
    const response = await visit('/', { ...(await signedIn()), host: 'evil.example' });
    expect(response.status).toBe(421);
    expect((await response.json()).error.code).toBe('misdirected_host');
  });

  test('matches every page, and no route that checks access itself', () => {
    for (const page of ['/', '/sessions/a.b', '/sessions/favicon.ico', '/inbox', '/apix', '/signed-out', '/sign-inx']) {
      expect([page, isMatched(page)]).toEqual([page, true]);
    }
    for (const other of [
      '/api',
      '/api/v1/events',
      '/_next/static/x.js',
      '/sign-in',
      '/sign-in/callback',
      '/healthz',
      '/favicon.ico',
      '/embed.js',
    ]) {
      expect([other, isMatched(other)]).toEqual([other, false]);
    }
  });
});
