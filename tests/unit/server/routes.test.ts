import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { METHODS, ROUTES, type Route } from '@/lib/server/routes';
import { errorOf } from '../../support/ingest-target';
import { type InProcessServer, inProcessServer } from '../../support/server-target';

let server: InProcessServer;
beforeAll(async () => {
  server = await inProcessServer();
});
afterAll(() => server.close());

const pathOf = ({ pattern }: Route) => pattern.replace(/:\w+/g, 'id');
const named = ROUTES.map((route): [string, Route] => [`${route.method} ${route.pattern}`, route]);
const api = named.filter(([, { access }]) => access !== 'open');

describe('every route', () => {
  test('is registered once', () => {
    expect(new Set(named.map(([name]) => name)).size).toBe(ROUTES.length);
  });

  test('below /api/v1 needs a credential, except the health checks', () => {
    const open = ROUTES.filter(({ pattern, access }) => pattern.startsWith('/api/') && access === 'open');
    expect(new Set(open.map(({ pattern }) => pattern))).toEqual(new Set(['/api/v1/healthz', '/api/v1/readyz']));
  });

  test.each(api)('refuses requests without a credential: %s', async (_, route) => {
    const response = await server.send(pathOf(route), { method: route.method });
    expect([response.status, (await errorOf(response)).code]).toEqual([401, 'unauthenticated']);
  });

  test.each(api)('refuses another host name: %s', async (_, route) => {
    const headers = { host: 'evil.example', authorization: `Bearer ${server.token}` };
    expect((await server.send(pathOf(route), { method: route.method, headers })).status).toBe(421);
  });

  test('for programs refuses a sign-in cookie, others accept it', async () => {
    const signIn = await server.send(`/sign-in?token=${server.token}`);
    const cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const headers = { cookie, 'sec-fetch-site': 'same-origin' };
    for (const [name, route] of api) {
      const response = await server.send(pathOf(route), { method: route.method, headers });
      expect([name, response.status === 401]).toEqual([name, route.access === 'speak']);
      await response.body?.cancel();
    }
  });

  test.each(named)('refuses other methods and lists its own: %s', async (_, route) => {
    const own = ROUTES.filter(({ pattern }) => pattern === route.pattern).map(({ method }) => method);
    const headers = { authorization: `Bearer ${server.token}` };
    for (const method of METHODS.filter((each) => !own.includes(each))) {
      const response = await server.send(pathOf(route), { method, headers });
      expect([method, response.status]).toEqual([method, 405]);
      expect(response.headers.get('allow')?.split(', ')).toEqual(METHODS.filter((each) => own.includes(each)));
    }
  });

  const bodiesOf = (route: Route) => (route.access === 'open' ? [] : (route.accepts.bodies ?? []));
  test.each(named.filter(([, route]) => bodiesOf(route).length > 0))(
    'validates its body by its schema: %s',
    async (_, route) => {
      const known = bodiesOf(route).map(({ shape }) => Object.keys(shape));
      const fields = [];
      for (const body of ['{"level":null,"of no use":1}', '{"level":null,"of no use":1,"answers":{}}']) {
        const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
        const response = await server.send(pathOf(route), { method: route.method, headers, body });
        fields.push((await errorOf(response)).fields);
      }
      expect(new Set(fields.map(String))).toEqual(new Set(known.map(String)));
    },
  );
});

describe('a route’s query', () => {
  const refusal = async (path: string) => {
    const response = await server.get(`/api/v1${path}`);
    return [response.status, await errorOf(response)] as const;
  };

  test.each(['/sessions?limit=0', '/agents?limit=1001', '/sessions/s/transcript?limit=x', '/agents/a/logs?limit=-1'])(
    'names the invalid argument and its allowed values: %s',
    async (path) => {
      const limit = path.split('=')[1];
      const message = expect.stringMatching(/^limit=".*" is invalid: it must be a whole number from 1 to \d+\.$/);
      expect(await refusal(path)).toEqual([400, { code: 'invalid_argument', message, limit }]);
    },
  );

  test('with filters rejects unknown ones', async () => {
    const message = '"when" is not a parameter of this route. Use at, or omit it.';
    expect(await refusal('/sessions/s/turn-at?when=5')).toEqual([
      400,
      { code: 'invalid_argument', message, when: '5' },
    ]);
  });

  test('uses the first of repeated arguments, and every component', async () => {
    expect((await server.get('/api/v1/sessions?limit=5&limit=0')).status).toBe(200);
    expect((await server.get('/api/v1/agents/a/logs?component=x&component=y')).status).toBe(404);
  });
});

describe('an id in a path', () => {
  const get = (path: string) =>
    server.get(path).then(async (response) => ({ status: response.status, ...(await response.json()) }));

  test('is decoded', async () => {
    expect(await get('/api/v1/sessions/a%2Fb%20ü')).toMatchObject({
      status: 404,
      error: { message: expect.stringContaining('"a/b ü"') },
    });
  });

  test('is refused if it is not UTF-8', async () => {
    expect(await get('/api/v1/sessions/%ff')).toMatchObject({ status: 400, error: { code: 'malformed' } });
  });

  test('is never empty', async () => {
    expect(await get('/api/v1/sessions/')).toMatchObject({
      status: 404,
      error: { message: expect.stringContaining('no route') },
    });
  });
});

describe('PROTOCOL.md', () => {
  const page = readFileSync(new URL('../../../lib/protocol/PROTOCOL.md', import.meta.url), 'utf8');
  /** A route as PROTOCOL.md writes it: without the base path, and with `:id` for an agent or session. */
  const written = ({ method, pattern }: Pick<Route, 'method' | 'pattern'>) =>
    `${method} ${pattern.replace('/api/v1', '').replace(/^(\/(?:agents|sessions))\/:\w+/, '$1/:id')}`;
  const control = page.indexOf('POST /hooks/:event');
  const listed = new Set(
    [...page.slice(0, control).matchAll(/`(GET|POST|PUT|PATCH|DELETE)\s+(\/[\w.:/-]*)/g)].map(
      (match) => `${match[1]} ${match[2]}`,
    ),
  );

  test('lists every route', () => {
    expect(
      ROUTES.filter(({ method }) => method !== 'HEAD')
        .map(written)
        .filter((route) => !listed.has(route)),
    ).toEqual([]);
  });

  test('lists no unknown route', () => {
    const there = new Set(ROUTES.map(written));
    expect([...listed].filter((route) => !there.has(route))).toEqual([]);
  });
});
