import type { NewToken, SignInCode } from '@interlude/protocol/access';
import { afterEach, describe, expect, test } from 'vitest';
import { ROUTES, type Route } from '@/lib/server/routes';
import type { Headers, RequestOptions } from '../support/access-stage';
import { serverBehindPrism } from '../support/behind-prism';
import { busyAgent, CONSOLE, pathFor, validRequest } from '../support/busy-agent';
import { ensurePrism } from '../support/prism.mjs';
import { describeAccessContract } from './access-contract';
import { describeContract, sharedServer } from './contract';

/** The contract through Prism, which fails on any response that differs from the OpenAPI document. */
const suites = 'missing' in ensurePrism() ? describe.skip : describe;
const shared = sharedServer(() => serverBehindPrism());
/** The receiver of the webhook does not respond. */
const SETTINGS = { INTERLUDE_EMBED_ORIGINS: CONSOLE, INTERLUDE_WEBHOOK_URL: 'http://127.0.0.1:9/' };
const withWebhook = sharedServer(() => serverBehindPrism(SETTINGS));

/** Operations that are refused without an identity provider, which no server here has. */
const REFUSED = ['POST /sign-in/back-channel-logout', 'PUT /api/v1/members/:memberId'];

const nameOf = ({ method, pattern }: Route) => `${method} ${pattern}`;

suites('behind Prism', () => {
  afterEach(async () => {
    for (const open of [shared, withWebhook]) expect((await open()).takeViolations()).toEqual([]);
  });

  describeContract('behind Prism', shared);
  describeAccessContract('behind Prism', shared);

  test('answers every route as documented', async () => {
    const target = await withWebhook();
    const send = (path: string, { method = 'GET', body, headers = {} }: RequestOptions = {}) => {
      const isRaw = body === undefined || body instanceof Uint8Array;
      const type: Headers = isRaw ? {} : { 'content-type': 'application/json' };
      const all = { authorization: `Bearer ${target.token}`, ...type, ...headers };
      return target.send(path, {
        method,
        headers: all,
        body: isRaw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
      });
    };
    const ask = async <Model>(path: string, sent?: RequestOptions) =>
      (await send(`/api/v1${path}`, sent)).json() as Model;
    const ids = await busyAgent({ ask }, 'a');
    for (const route of ROUTES.filter((one) => target.passes(one))) {
      const { query, body } = validRequest(route.method, route.pattern, ids);
      const headers: Headers = body instanceof Uint8Array ? { 'content-type': 'text/plain' } : {};
      const response = await send(`${pathFor(route.pattern, ids)}${query}`, { method: route.method, body, headers });
      await response.arrayBuffer();
    }
    const { credential } = await ask<NewToken>('/tokens', { method: 'POST', body: { role: 'viewer' } });
    await ask(`/credentials/${credential.id}`, { method: 'DELETE' });
    const signIn = async () => {
      const { code } = await ask<SignInCode>('/sign-in-codes', { method: 'POST' });
      const { headers } = await target.send(`/sign-in?token=${code}`);
      return { cookie: headers.get('set-cookie')?.split(';')[0] ?? '', 'sec-fetch-site': 'same-origin' };
    };
    const [, headers] = [await signIn(), await signIn()];
    await target.send('/api/v1/me/sign-ins', { method: 'DELETE', headers });
  });

  test('has validated a successful response of every operation', async () => {
    const targets = await Promise.all([shared(), withWebhook()]);
    const statusesOf = (name: string) => targets.flatMap(({ validated }) => [...(validated.get(name) ?? [])]);
    const names = ROUTES.filter((route) => targets[0].passes(route)).map(nameOf);
    expect(names.filter((name) => !statusesOf(name).some((status) => status < 300))).toEqual(REFUSED);
  });

  test('reports an undocumented response of any operation', async () => {
    const target = await withWebhook();
    const unnoticed: string[] = [];
    for (const route of ROUTES.filter((one) => target.passes(one))) {
      const status = 'status' in route ? route.status : 200;
      await target.askFor(route, Response.json('of another shape', { status }));
      if (target.takeViolations().length === 0) unnoticed.push(nameOf(route));
    }
    // Its response has no body.
    expect(unnoticed).toEqual(['POST /sign-in/back-channel-logout']);
  });
});
