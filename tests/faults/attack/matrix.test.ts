import type { NewEmbed } from '@interlude/protocol/access';
import { PERMISSIONS, type Permission, type Role, type Scope } from '@interlude/protocol/scope';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { makeSecret } from '@/lib/server/access/secret';
import { METHODS, type Method, ROUTES } from '@/lib/server/routes';
import {
  CANARY,
  CONSOLE,
  CRON_SECRET,
  METRICS_TOKEN,
  PLACED_SECRET,
  pathFor,
  plantCanaries,
  SECRET,
  validRequest,
} from '@/tests/support/busy-agent';
import { AccessStage, bearer, type Headers, secretOf } from '../../support/access-stage';
import { type BusyAgent, busyAgent, missingIds } from '../../support/busy-agent';
import { FrameReader } from '../../support/frames';

/**
 * Requests every route with every method and every kind of credential, for ids in scope, of another agent, and unknown.
 * The expected status follows from the route's purpose, which `neededFor` derives independently from its path, and from
 * role and scope. A new route without an example request in tests/support/busy-agent.ts, or with a path that matches no
 * rule, fails by name.
 */

/** A credential's scope. All but `everything` are limited to agent A. */
type Reach = 'everything' | 'agents' | 'session' | 'log' | 'fleet';

interface Requester {
  headers: Headers;
  role: Role;
  reach: Reach;
  redacts?: boolean;
}

let stage: AccessStage;
let own: BusyAgent;
let foreign: BusyAgent;
const none = missingIds();
const requesters: Record<string, Requester> = {};
/** Invalid credentials. */
const invalidCredentials: Record<string, Headers> = {};
let crossOrigin: Headers;
/** Number of executed database statements. */
let statements = 0;

beforeAll(async () => {
  // fix the clock, so that equal responses have equal times
  vi.spyOn(Date, 'now').mockReturnValue(Date.now());
  stage = await AccessStage.start({
    env: {
      INTERLUDE_EMBED_ORIGINS: CONSOLE,
      INTERLUDE_CRON_SECRET: CRON_SECRET,
      INTERLUDE_METRICS_TOKEN: METRICS_TOKEN,
    },
  });
  const { reader } = stage.parts.database;
  for (const name of ['execute', 'batch', 'transaction'] as const) {
    const run = reader[name].bind(reader) as (...args: unknown[]) => unknown;
    vi.spyOn(reader, name).mockImplementation(((...args: unknown[]) => {
      statements += 1;
      return run(...args);
    }) as never);
  }
  own = await busyAgent(stage, 'a');
  foreign = await busyAgent(stage, 'b');
  await plantCanaries(stage, own);
  await plantCanaries(stage, foreign);
  const agents: Scope = { kind: 'agents', ids: [own.agentId], prefixes: [] };
  const prefix: Scope = { kind: 'agents', ids: [], prefixes: [own.agentId] };
  const made = async (role: Role, scope: Scope, redacts = false) =>
    bearer((await stage.credential({ role, scope, redacts })).secret);
  const everything = async (role: Role, redacts = false): Promise<Requester> => ({
    headers: await made(role, { kind: 'everything' }, redacts),
    role,
    reach: 'everything',
    redacts,
  });
  const issuer = await made('issuer', agents);
  const embed = async (reach: Reach, role: Role, body: object): Promise<Requester> => {
    const sent = { method: 'POST', as: issuer, body: { parentOrigin: CONSOLE, role, redact: false, ...body } };
    return { headers: bearer((await stage.ask<NewEmbed>('/embed-tokens', sent)).token), role, reach };
  };
  const ofA = (role: Role, headers: Headers): Requester => ({ headers, role, reach: 'agents' });
  Object.assign(requesters, {
    'the owner': { headers: stage.owner, role: 'owner', reach: 'everything' },
    'somebody signed in': { headers: await stage.browser(), role: 'admin', reach: 'everything' },
    'an admin': await everything('admin'),
    'an operator': await everything('operator'),
    'a viewer': await everything('viewer'),
    'an issuer': await everything('issuer'),
    'a runner of any agent': await everything('runner'),
    'the timer': { headers: bearer(CRON_SECRET), role: 'timer', reach: 'everything' },
    'the monitor': { headers: bearer(METRICS_TOKEN), role: 'monitor', reach: 'everything' },
    'a redacted viewer': await everything('viewer', true),
    'a redacted operator': await everything('operator', true),
    'the runner of A': ofA('runner', await stage.token({ agent: own.agentId })),
    'the runner of all that begin like A': ofA('runner', await stage.token({ agentPrefix: own.agentId })),
    'the runner of A with outboxes of its own': ofA(
      'runner',
      await stage.token({ agent: own.agentId, producerPrefix: 'elsewhere' }),
    ),
    'an issuer of A': ofA('issuer', issuer),
    'a viewer of A': ofA('viewer', await made('viewer', agents)),
    'an operator of A': ofA('operator', await made('operator', agents)),
    'an operator of all that begin like A': ofA('operator', await made('operator', prefix)),
    'an embed of a session of A': await embed('session', 'viewer', { sessionId: own.sessionId }),
    'an embed of that session that may act': await embed('session', 'operator', { sessionId: own.sessionId }),
    'an embed of the log of A': await embed('log', 'viewer', { agentId: own.agentId }),
    'an embed of the list of A': await embed('fleet', 'viewer', { fleet: true }),
  } satisfies Record<string, Requester>);

  const { id: revokedId, ...revoked } = await stage.token({ role: 'admin' });
  await stage.ask(`/credentials/${revokedId}`, { method: 'DELETE' });
  const signedOut = await stage.browser();
  await stage.send('/sign-out', { method: 'POST', as: { ...signedOut, origin: 'http://127.0.0.1:4319' } });
  const signIn = await stage.browser();
  const ended = { role: 'admin', expiresAt: Date.now() - 1 } as const;
  const expired = await stage.credential({ ...ended, kind: 'session' });
  const inCookie = (headers: Headers) => ({
    cookie: `interlude=${secretOf(headers)}`,
    'sec-fetch-site': 'same-origin',
  });
  const unknown = bearer(makeSecret('token'));
  Object.assign(invalidCredentials, {
    'no credential': {},
    'an unknown token': unknown,
    'a revoked token': revoked,
    'an expired token': bearer((await stage.credential(ended)).secret),
    'an expired embed': bearer((await stage.credential({ ...ended, kind: 'embed' })).secret),
    'an expired sign-in': inCookie(bearer(expired.secret)),
    'a sign-in that was ended': signedOut,
    'a code as a token': bearer(await stage.code()),
    'a code as a cookie': inCookie(bearer(await stage.code())),
    'a cookie as a token': bearer(secretOf(signIn)),
    'a token as a cookie': inCookie((requesters['an admin'] as Requester).headers),
    'an embed as a cookie': inCookie((requesters['an embed of a session of A'] as Requester).headers),
    'an unknown token beside a good cookie': { ...signIn, ...unknown },
  } satisfies Record<string, Headers>);
  crossOrigin = { ...signIn, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
});
afterAll(async () => {
  vi.restoreAllMocks();
  await stage.close();
});

const API = '/api/v1';
const paths = [...new Set(ROUTES.map(({ pattern }) => pattern))];
const methodsOf = (pattern: string) => ROUTES.filter((route) => route.pattern === pattern).map(({ method }) => method);
const isOpen = (pattern: string) => /^(\/api\/v1)?\/(healthz|readyz)$|^\/sign-(in|out)(\/|$)/.test(pattern);

/** A route's purpose, by its path. A path that matches no rule gets null, which fails this test. */
function neededFor(method: Method, pattern: string): Permission | null {
  if (pattern === '/metrics') return 'observe';
  const path = pattern.slice(API.length);
  if (/^\/(me\b|openapi\.json$)/.test(path)) return 'self';
  if (path === '/embed-tokens') return 'issue';
  if (path === '/cron') return 'tend';
  if (/^\/(credentials|tokens|sign-in-codes|audit|members|storage)\b/.test(path)) return 'administer';
  if (/^\/events$|^\/agents\/:agentId\/commands\b/.test(path)) return 'speak';
  if (/^\/agents\/:agentId\/reply-obligations$|^\/attachments\//.test(path)) return 'attend';
  if (/^\/(stream|sessions|inbox|counts|activity|agents|agui|webhook)\b/.test(path))
    return method === 'GET' ? 'read' : 'act';
  return null;
}

/** Independent copy of the documented roles. */
const ROLE_MAY: Record<Role, string> = {
  viewer: 'self read attend',
  operator: 'self read attend act',
  admin: 'self read attend act issue administer tend observe',
  owner: 'self read attend act issue administer tend observe speak',
  runner: 'self attend speak',
  issuer: 'self issue',
  timer: 'tend',
  monitor: 'observe',
};

/** True if the credential's scope includes the path's agent or session. Only for ids of agent A. */
function hasOwn(reach: Reach, pattern: string): boolean {
  const [ofAgent, ofSession] = [pattern.includes('/:agentId'), /:sessionId|\/:hash/.test(pattern)];
  if (reach === 'everything' || reach === 'agents') return true;
  if (reach === 'session') return !ofAgent;
  if (reach === 'fleet') return !ofAgent && !ofSession;
  return ofAgent ? /\/(logs|log-level)\b/.test(pattern) : !ofSession;
}

async function answer(method: Method, pattern: string, ids: BusyAgent, headers: Headers) {
  const { query, body } = validRequest(method, pattern, ids);
  const type = body instanceof Uint8Array ? { 'content-type': 'text/plain' } : undefined;
  const before = statements;
  const response = await stage.send(`${pathFor(pattern, ids)}${query}`, { method, as: headers, body, headers: type });
  const head = [...response.headers];
  const work = statements - before;
  if (!isStream(response)) return { status: response.status, head, text: await response.text(), work };
  const stream = new FrameReader(response.body as ReadableStream<Uint8Array>);
  if (!pattern.includes('/agui/')) await stream.frame('up-to-date');
  await stream.cancel();
  return { status: response.status, head, text: JSON.stringify(stream.frames), work };
}

function isStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false;
}

/** Replaces the requested ids in all their encodings. */
function plain({ status, head, text }: { status: number; head: unknown; text: string }, ids: BusyAgent): string {
  let said = text.replace(/\bil[a-z]_[\w-]{43}/g, '<secret>');
  for (const [name, id] of Object.entries(ids)) {
    said = said.replaceAll(`\\"${id}\\"`, `<${name}>`);
    if (name !== 'position') said = said.replaceAll(id, `<${name}>`).replaceAll(encodeURIComponent(id), `<${name}>`);
  }
  return JSON.stringify([status, head, said]);
}

test('lists a permission for every route and every role', () => {
  for (const { method, pattern, access } of ROUTES) {
    const expected = isOpen(pattern) ? 'open' : neededFor(method, pattern);
    expect([method, pattern, access]).toEqual([method, pattern, expected]);
  }
  for (const [role, may] of Object.entries(PERMISSIONS))
    expect([role, [...may].sort()]).toEqual([role, sorted(role as Role)]);
});

function sorted(role: Role): string[] {
  return ROLE_MAY[role].split(' ').sort();
}

test('answers every invalid credential 401 with the same bytes', async () => {
  for (const [name, headers] of Object.entries(invalidCredentials)) {
    const answers = new Set<string>();
    for (const pattern of paths.filter((one) => !isOpen(one))) {
      for (const method of METHODS) {
        for (const ids of name === 'no credential' ? [own, none] : [own]) {
          const { status, head, text } = await answer(method, pattern, ids, headers);
          expect([name, method, pattern, status]).toEqual([name, method, pattern, 401]);
          answers.add(JSON.stringify([head, text]));
        }
      }
    }
    expect([name, answers.size]).toEqual([name, 1]);
    expect([...answers][0]).toContain('www-authenticate');
  }
});

test('rejects a cross-origin cookie on every path', async () => {
  for (const pattern of paths.filter((one) => !isOpen(one))) {
    for (const method of METHODS) {
      const { status } = await answer(method, pattern, own, crossOrigin);
      // cookies never authorize runner routes, from any origin
      const expected = methodsOf(pattern).includes(method) && neededFor(method, pattern) === 'speak' ? 401 : 403;
      expect([method, pattern, status]).toEqual([method, pattern, expected]);
    }
  }
});

test('open routes set no session cookie, never fail and leak no canary', async () => {
  for (const pattern of paths.filter(isOpen)) {
    for (const method of METHODS) {
      for (const [name, headers] of Object.entries({ ...invalidCredentials, 'a foreign site': crossOrigin })) {
        const { status, head, text } = await answer(method, pattern, own, headers);
        const about = [name, method, pattern];
        expect([...about, methodsOf(pattern).includes(method) ? status < 500 : status]).toEqual([
          ...about,
          methodsOf(pattern).includes(method) ? true : 405,
        ]);
        const cookies = head.filter(([header]) => header === 'set-cookie').map(([, value]) => value);
        expect([...about, cookies.filter((cookie) => cookie.includes('=il'))]).toEqual([...about, []]);
        expect([...about, CANARY.test(text)]).toEqual([...about, false]);
      }
    }
  }
});

test('answers 405 with Allow', async () => {
  const some = ['the owner', 'a redacted viewer', 'the runner of A', 'an embed of the log of A'];
  for (const pattern of paths.filter((one) => !isOpen(one))) {
    const allow = METHODS.filter((method) => methodsOf(pattern).includes(method)).join(', ');
    for (const method of METHODS.filter((one) => !methodsOf(pattern).includes(one))) {
      for (const name of some) {
        const { status, head } = await answer(method, pattern, foreign, (requesters[name] as Requester).headers);
        const about = [name, method, pattern];
        expect([...about, status, new Headers(head).get('allow')]).toEqual([...about, 405, allow]);
      }
    }
  }
});

const api = () => ROUTES.filter(({ pattern }) => !isOpen(pattern));

test('answers foreign ids byte for byte like unknown ids', async () => {
  const differing: string[][] = [];
  for (const [name, requester] of Object.entries(requesters)) {
    if (requester.reach === 'everything') continue;
    for (const { method, pattern } of api()) {
      if (pattern === `${API}/events`) continue;
      const theirs = plain(await answer(method, pattern, foreign, requester.headers), foreign);
      const nobodys = plain(await answer(method, pattern, none, requester.headers), none);
      if (theirs !== nobodys) differing.push([name, method, pattern, theirs, nobodys]);
    }
  }
  expect(differing).toEqual([]);
});

test('runs as many statements for another agent’s ids as for unknown ids', async () => {
  const different: unknown[][] = [];
  for (const [name, { headers, reach }] of Object.entries(requesters)) {
    if (reach === 'everything') continue;
    for (const { method, pattern } of api().filter((route) => route.pattern.includes('/:'))) {
      const work = async (ids: BusyAgent) => (await answer(method, pattern, ids, headers)).work;
      const compared = async () => [await work(foreign), await work(none)] as const;
      // a server timer may run a statement in between
      for (const tries of [1, 2, 3]) {
        const [theirs, nobodys] = await compared();
        if (theirs === nobodys) break;
        if (tries === 3) different.push([name, method, pattern, theirs, nobodys]);
      }
    }
  }
  expect(different).toEqual([]);
});

test('answers a request with one foreign id like one with an unknown id', async () => {
  const differing: string[][] = [];
  for (const [name, requester] of Object.entries(requesters)) {
    if (requester.reach === 'everything') continue;
    for (const { method, pattern } of api()) {
      for (const part of Object.keys(own) as (keyof BusyAgent)[]) {
        if (pattern === `${API}/events` || !names(method, pattern, part)) continue;
        const answers: string[] = [];
        for (const ids of [foreign, none]) {
          const mixed = { ...own, [part]: ids[part] };
          answers.push(plain(await answer(method, pattern, mixed, requester.headers), mixed));
        }
        const [theirs = '', nobodys = ''] = answers;
        if (theirs !== nobodys) differing.push([name, method, pattern, part, theirs, nobodys]);
      }
    }
  }
  expect(differing).toEqual([]);
});

/** True if the request contains that id. */
function names(method: Method, pattern: string, part: keyof BusyAgent): boolean {
  const said = (ids: BusyAgent) => {
    const { query, body } = validRequest(method, pattern, ids);
    return JSON.stringify([pathFor(pattern, ids), query, { ...(body as object), clientId: '' }]);
  };
  return said(own) !== said({ ...own, [part]: none[part] });
}

/** Expected status for agent A's ids. `let in`: any success, or a conflict with an earlier request. */
function expectedFor(name: string, { role, reach, headers, redacts }: Requester, method: Method, pattern: string) {
  const route = `${method} ${pattern}`;
  const needed = neededFor(method, pattern) ?? '';
  const isSignedIn = 'cookie' in headers;
  if (needed === 'speak' && isSignedIn) return 401;
  if (!ROLE_MAY[role].split(' ').includes(needed)) return 403;
  // for signed-in users or the local machine, not for programs
  if (OF_PEOPLE.includes(route) && !isSignedIn && !(role === 'owner' && method === 'POST')) return 403;
  // its responses are not redacted
  if (redacts && pattern.includes('/agui/')) return 403;
  // redacted readers see keyed hashes and can't use the plain one
  if (redacts && pattern.endsWith('/attachments/:hash')) return 404;
  if (!hasOwn(reach, pattern)) return 404;
  // embeds may not approve anything
  if (name.includes('embed') && pattern.endsWith('/requests/:requestId') && method === 'POST') return 403;
  if (name.includes('outboxes of its own') && pattern.endsWith('/events')) return 403;
  return NOT_THERE.includes(route) ? 404 : 'let in';
}

test('permits exactly what role and scope permit', async () => {
  const wrong: unknown[][] = [];
  for (const [name, requester] of Object.entries(requesters)) {
    for (const { method, pattern } of api()) {
      const expected = expectedFor(name, requester, method, pattern);
      const { status, text } = await answer(method, pattern, own, requester.headers);
      const came = status < 300 || status === 409 ? 'let in' : status;
      const isForbidden = status !== 403 || JSON.parse(text).error.code === 'forbidden';
      if (came !== expected || !isForbidden) wrong.push([name, method, pattern, expected, came, text.slice(0, 200)]);
    }
  }
  expect(wrong).toEqual([]);
});

const OF_PEOPLE = ['DELETE /api/v1/me/sign-ins', 'POST /api/v1/sign-in-codes'];

/** The id in the path doesn't exist. */
const NOT_THERE = ['DELETE /api/v1/credentials/:credentialId', 'PUT /api/v1/members/:memberId'];

const OF_B =
  '(agent|session|task|request|question|run|other|third|component|stray|client|second|said|call|asks|canary-\\w+)-b\\b|\\bof b\\b';

/** Texts that no response may contain, by scope. */
const HIDDEN: Record<Exclude<Reach, 'everything'>, RegExp> = {
  agents: new RegExp(OF_B),
  session: new RegExp(`${OF_B}|canary-(elsewhere|line|component)|The log of a`),
  log: new RegExp(`${OF_B}|canary-(?!line|component)|The (words|task|output|file) of a`),
  fleet: new RegExp(`${OF_B}|canary-(output|result|line|component)|The (output|log|file) of a`),
};

/** Routes of a `fleet` embed. */
const LIST = ['GET /api/v1/sessions', 'GET /api/v1/stream'];

test('leaks no canary from outside the scope', async () => {
  const leaks: string[][] = [];
  for (const [name, { headers, reach }] of Object.entries(requesters)) {
    if (reach === 'everything') continue;
    for (const { method, pattern } of api()) {
      const isBesideList = reach === 'fleet' && !LIST.includes(`${method} ${pattern}`);
      const hidden = isBesideList ? /canary-|The (words|task|output|log|file) of [ab]\b/ : HIDDEN[reach];
      for (const ids of [own, foreign, none]) {
        const said = plain(await answer(method, pattern, ids, headers), ids);
        const found = hidden.exec(said)?.[0];
        if (found !== undefined)
          leaks.push([name, method, pattern, said.slice(Math.max(0, said.indexOf(found) - 60)).slice(0, 150)]);
      }
    }
  }
  expect(leaks).toEqual([]);
});

test('redacts the secret in every response, for redacted readers only', async () => {
  const readers = Object.entries(requesters).filter(([name]) => /redacted|an operator$/.test(name));
  for (const [name, { headers, redacts = false }] of readers) {
    const shown: string[] = [];
    for (const { method, pattern } of api()) {
      const { text } = await answer(method, pattern, own, headers);
      if (text.includes(SECRET.slice(0, 12)) || text.includes(PLACED_SECRET)) shown.push(`${method} ${pattern}`);
    }
    expect([name, redacts ? shown : shown.length > 5]).toEqual([name, redacts ? [] : true]);
  }
});

test.each([
  ['a list of sessions', (ids: BusyAgent) => `/sessions?agent=${ids.agentId}`],
  ['a search', (ids: BusyAgent) => `/sessions?q=${ids.sessionId}`],
  ['a search for agents', (ids: BusyAgent) => `/agents?q=${ids.agentId}`],
  ['an inbox', (ids: BusyAgent) => `/inbox?agent=${ids.agentId}`],
  ['the inbox of a session', (ids: BusyAgent) => `/inbox?session=${ids.sessionId}`],
  ['a file by its hash', (ids: BusyAgent) => `/attachments/${ids.hash}?session=${own.sessionId}`],
  ['a file of another session', (ids: BusyAgent) => `/attachments/${own.hash}?session=${ids.sessionId}`],
  ['a session’s stream', (ids: BusyAgent) => `/stream?topic=session:${ids.sessionId}`],
  ['a log’s stream', (ids: BusyAgent) => `/stream?topic=fleet&topic=logs:${ids.agentId}`],
  [
    'a page before a turn',
    (ids: BusyAgent) => `/sessions/${own.sessionId}/transcript?before=run-${ids.agentId.at(-1)}`,
  ],
])('%s leaks nothing about other agents', async (_, pathOf) => {
  for (const [name, requester] of Object.entries(requesters)) {
    if (requester.reach === 'everything') continue;
    const [theirs, nobodys] = await Promise.all(
      [foreign, none].map(async (ids) => {
        const response = await stage.send(`${API}${pathOf(ids)}`, { as: requester.headers });
        if (isStream(response)) throw new Error(`${name} receives other agents' events`);
        const text = (await response.text()).replaceAll(`run-${ids.agentId.at(-1)}`, '<run>');
        return plain({ status: response.status, head: [...response.headers], text }, ids);
      }),
    );
    expect([name, theirs]).toEqual([name, nobodys]);
  }
});

test('answers a runner about a foreign session id as about a new one', async () => {
  const requester = requesters['the runner of A'] as Requester;
  const send = async (sessionId: string, seq: number) => {
    const event = { type: 'CUSTOM', name: 'marker', value: 1 };
    const record = { seq, kind: 'event', agentId: own.agentId, sessionId, occurredAt: 1_795_170_002_000, event };
    const body = { producer: { id: `${own.agentId}/squatter-${seq}`, epoch: 1 }, records: [{ ...record, seq: 1 }] };
    const response = await stage.send(`${API}/events`, { method: 'POST', as: requester.headers, body });
    const text = (await response.text()).replaceAll(sessionId, '<sessionId>').replace(/"position":"\d+"/g, '');
    return [response.status, text];
  };
  expect(await send(foreign.sessionId, 1)).toEqual(await send('session-that-is-new', 2));
});
