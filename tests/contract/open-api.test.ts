import type { JsonSchema, OpenApiDocument, Operation } from '@interlude/protocol/open-api';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GROUPS } from '@/lib/server/open-api/route-docs';
import { ROUTES, type Route } from '@/lib/server/routes';
import { AccessStage } from '../support/access-stage';
import { closed } from '../support/agui-verifier';
import { type BusyAgent, busyAgent, CONSOLE, pathFor, validRequest } from '../support/busy-agent';

/** The OpenAPI document, and the server's conformance to it. */

let stage: AccessStage;
let ids: BusyAgent;
let document: OpenApiDocument;
let schemas: Ajv2020;

beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  ids = await busyAgent(stage, 'a');
  document = await stage.ask<OpenApiDocument>('/openapi.json');
  schemas = new Ajv2020({ strict: false, allErrors: true });
  schemas.addSchema({ $id: 'document', ...(closed(document) as object) });
});
afterAll(() => stage.close());

const pathOf = ({ pattern }: Route) => pattern.replace(/:(\w+)/g, '{$1}');
const operationOf = (route: Route) => document.paths[pathOf(route)]?.[route.method.toLowerCase()] as Operation;

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(JSON.parse(JSON.stringify(document)))).toMatchObject({ valid: true });
    expect(validator.version).toBe('3.1');
    // Every reference resolves.
    expect(() => validator.resolveRefs()).not.toThrow();
    for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(Object.keys(document.components.schemas)).toContain(name);
    }
  });

  test('lists exactly the routes of the route table', () => {
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual(ROUTES.map((route) => `${route.method} ${pathOf(route)}`).sort());
    const ids = ROUTES.map((route) => operationOf(route).operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const described = GROUPS.flatMap(({ routes }) => Object.keys(routes));
    const there = new Set(ROUTES.map(({ method, pattern }) => `${method} ${pattern.replace(/^\/api\/v1/, '')}`));
    expect(described.sort()).toEqual([...there].sort());
  });

  test('documents the permission and parameters of each route', () => {
    for (const route of ROUTES) {
      const { security, parameters, requestBody, ...documented } = operationOf(route);
      const about = [route.method, route.pattern];
      expect([...about, documented['x-permission'] ?? 'open']).toEqual([...about, route.access]);
      expect([...about, security.length]).toEqual([...about, { open: 0, speak: 1 }[route.access as string] ?? 2]);
      const [query, bodies] = route.access === 'open' ? [] : [route.accepts.query, route.accepts.bodies];
      const inQuery = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
      if (query !== undefined) expect([...about, inQuery]).toEqual([...about, Object.keys(query.shape)]);
      if (bodies !== undefined) expect([...about, requestBody !== undefined]).toEqual([...about, true]);
      const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
      expect([...about, inPath]).toEqual([...about, [...route.pattern.matchAll(/:(\w+)/g)].map(([, name]) => name)]);
      for (const { schema } of parameters) expect(() => schemas.compile(schema)).not.toThrow();
    }
  });

  test('documents the schema of each parameter', () => {
    const { parameters } = operationOf(ROUTES.find(({ pattern }) => pattern.endsWith('/logs')) as Route);
    const named = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
    expect(named).toMatchObject({
      limit: { type: 'integer', minimum: 1, maximum: 1_000, default: 200 },
      level: { type: 'string', enum: ['debug', 'info', 'warn', 'error', 'fatal'] },
      component: { type: 'array', items: { type: 'string' } },
      before: { type: 'string', pattern: expect.any(String) },
      from: { type: 'integer' },
    });
    const turnAt = operationOf(ROUTES.find(({ pattern }) => pattern.endsWith('/turn-at')) as Route);
    expect(turnAt.parameters.find(({ name }) => name === 'at')).toMatchObject({ required: true });
  });
});

describe('the server', () => {
  test('accepts documented requests and returns documented responses', async () => {
    const answered: string[] = [];
    // Reads before writes.
    const order = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'];
    const routes = ROUTES.toSorted((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
    for (const route of routes.filter(({ access }) => access !== 'open')) {
      const { query, body } = validRequest(route.method, route.pattern, ids);
      const { requestBody, responses } = operationOf(route);
      const content = requestBody?.content['application/json'];
      const name = `${route.method} ${route.pattern}`;
      if (content !== undefined) expect([name, errorsOf(content.schema, body)]).toEqual([name, null]);
      const type = body instanceof Uint8Array ? { 'content-type': 'text/plain' } : undefined;
      const path = `${pathFor(route.pattern, ids)}${query}`;
      const response = await stage.send(path, { method: route.method, body, headers: type });
      const described = responses[response.status];
      expect([name, response.status, described !== undefined]).toEqual([name, response.status, true]);
      const mediaType = response.headers.get('content-type')?.split(';')[0] ?? '';
      if (mediaType === 'text/event-stream') {
        await response.body?.cancel();
        expect([name, Object.keys(described?.content ?? {})]).toEqual([name, [mediaType]]);
        continue;
      }
      const text = await response.text();
      const ref = described?.$ref?.split('/').at(-1) ?? '';
      const refused = document.components.responses[ref] as Operation['responses'][string] | undefined;
      const contents = (refused ?? described)?.content ?? {};
      const schema = (contents[mediaType] ?? contents['*/*'])?.schema;
      expect([name, mediaType, schema !== undefined]).toEqual([name, mediaType, true]);
      if (mediaType !== 'application/json' || route.pattern.endsWith('/openapi.json')) continue;
      expect([name, errorsOf(schema as JsonSchema, JSON.parse(text))]).toEqual([name, null]);
      if (response.ok) answered.push(name);
    }
    const known = GROUPS.flatMap(({ routes }) => Object.entries(routes))
      .filter(([, { answer, content }]) => answer !== undefined && content === undefined)
      .map(([name]) => name.replace(' ', ' /api/v1'));
    const refused = known.filter((name) => !answered.includes(name) && !/z$|openapi/.test(name));
    expect(refused).toEqual(REFUSED_HERE);
  });

  test('returns documented lists within the requested limit', async () => {
    const agent = encodeURIComponent(ids.agentId);
    const session = encodeURIComponent(ids.sessionId);
    const lists: Record<string, string[]> = {
      '/sessions': ['limit=1', 'after=0&limit=1', `agent=${agent}&limit=1`, `agent=${agent}&q=a`, 'state=idle', 'q=zz'],
      '/agents': ['limit=1', 'after=0&limit=1', 'q=a&limit=1'],
      '/inbox': ['limit=1', `agent=${agent}&limit=1`, `session=${session}&kind=question`, 'q=zz', 'by=owner'],
      '/webhook/deliveries': ['limit=1'],
      '/audit': ['limit=1'],
      '/activity': ['minutes=1'],
      [`/agents/${agent}/parked`]: ['limit=1'],
      [`/agents/${agent}/logs`]: ['limit=1', 'q=zz&limit=1'],
      [`/sessions/${session}/transcript`]: ['limit=1'],
    };
    for (const [path, queries] of Object.entries(lists)) {
      const route = ROUTES.find(
        ({ method, pattern }) => method === 'GET' && pathFor(pattern, ids) === `/api/v1${path}`,
      );
      const schema = operationOf(route as Route).responses[200]?.content?.['application/json']?.schema as JsonSchema;
      for (const query of queries) {
        const model = await stage.ask<Record<string, unknown>>(`${path}?${query}`);
        expect([path, query, errorsOf(schema, model)]).toEqual([path, query, null]);
        const rows = Object.values(model).filter((value) => Array.isArray(value));
        if (/limit=1/.test(query))
          expect([path, query, rows.every(({ length }) => length <= 1)]).toEqual([path, query, true]);
      }
    }
  });

  test('returns documented responses to sign-in and sign-out', async () => {
    const { cookie = '' } = await stage.browser();
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const inBrowser = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: 'text/html' };
    const ours = { cookie, 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:4319' };
    const bytes = (text: string) => new TextEncoder().encode(text);
    const requests: [string, string, Record<string, string>, Uint8Array?][] = [
      ['GET', '/sign-in', {}],
      ['GET', `/sign-in?token=${await stage.code()}`, { ...inBrowser, 'sec-fetch-site': 'cross-site' }],
      ['GET', `/sign-in?token=${await stage.code()}`, { ...inBrowser, purpose: 'prefetch', 'sec-purpose': 'prefetch' }],
      ['POST', '/sign-in', { ...form, ...ours }, bytes('token=wrong')],
      ['POST', '/sign-in', { ...form, 'sec-fetch-site': 'cross-site' }, bytes('token=wrong')],
      ['POST', '/sign-in', { ...form, ...ours }, bytes(`token=${'x'.repeat(20_000)}`)],
      ['GET', '/sign-in/provider', inBrowser],
      ['GET', '/sign-in/callback?state=x&code=y', inBrowser],
      ['POST', '/sign-in/back-channel-logout', form, bytes('logout_token=x')],
      ['POST', '/sign-out', {}],
      ['POST', '/sign-out', stage.owner],
      ['POST', '/sign-out', ours],
    ];
    for (const [method, path, headers, body] of requests) {
      const response = await stage.send(path, { method, as: {}, headers, body });
      const described = document.paths[path.replace(/\?.*/, '')]?.[method.toLowerCase()]?.responses[response.status];
      const ref = described?.$ref?.split('/').at(-1) ?? '';
      const { content = {} } =
        (document.components.responses[ref] as Operation['responses'][string]) ?? described ?? {};
      const type = response.headers.get('content-type')?.split(';')[0] ?? null;
      const text = await response.text();
      const name = [method, path, response.status];
      expect([...name, described !== undefined]).toEqual([...name, true]);
      expect([...name, type === null ? text : type]).toEqual([...name, type === null ? '' : expect.any(String)]);
      if (type !== null) expect([...name, Object.keys(content)]).toEqual([...name, expect.arrayContaining([type])]);
    }
  });

  test.each(['/api/v1/healthz', '/api/v1/readyz'])('returns the documented response at %s', async (path) => {
    const { content } = document.paths[path]?.get?.responses[200] ?? {};
    const model = await (await stage.send(path)).json();
    expect(errorsOf(content?.['application/json']?.schema as JsonSchema, model)).toBeNull();
  });

  test('sends documented frames', async () => {
    const frames =
      document.paths['/api/v1/stream']?.get?.responses[200]?.content?.['text/event-stream']?.schema['x-frames'];
    const topics = `topic=fleet&topic=session:${ids.sessionId}&topic=logs:${ids.agentId}`;
    const stream = await stage.stream(`/stream?${topics}&after=0`, stage.owner);
    const seen = new Set<string>();
    await stream.frame('up-to-date');
    for (const { event, data } of stream.frames) {
      const schema = (frames as Record<string, JsonSchema>)[event];
      expect([event, schema === undefined ? 'is not named' : errorsOf(schema, data)]).toEqual([event, null]);
      seen.add(event);
    }
    // All frames except `bye`.
    expect([...seen, 'bye'].sort()).toEqual(Object.keys(frames as object).sort());
  });
});

/** Refused here: the server has no member, other credential or webhook, and nothing left to settle. */
const REFUSED_HERE = [
  'POST /api/v1/sessions/:sessionId/tasks/:taskId/wake',
  'POST /api/v1/sessions/:sessionId/obligations/:messageId/accept',
  'POST /api/v1/webhook/test',
  'POST /api/v1/agents/:agentId/parked/:position/discard',
  'DELETE /api/v1/me/sign-ins',
  'DELETE /api/v1/credentials/:credentialId',
  'PUT /api/v1/members/:memberId',
];

/** The first errors of a value against a schema of the document. Null if valid. */
function errorsOf(schema: JsonSchema, value: unknown): string | null {
  const text = JSON.stringify(closed(schema)).replaceAll('"#/components/', '"document#/components/');
  const check = schemas.compile(JSON.parse(text));
  return check(value) ? null : JSON.stringify(check.errors?.slice(0, 4));
}
