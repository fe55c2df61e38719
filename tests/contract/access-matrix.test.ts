import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { MAY, type Permission, type Role, type Scope } from '@/lib/protocol/scope';
import { METHODS, type Method, ROUTES } from '@/lib/server/routes';
import { AccessStage, bearer, type Headers } from '../support/access-stage';
import { asked, CONSOLE, filled } from '../support/ask-route';
import { type BusyAgent, busyAgent, nobody } from '../support/busy-agent';

/**
 * Every route of the table, with every method, asked by everybody about what is theirs, somebody else's, and nobody's.
 * What must come of it follows from what a route is for, said here once more and by rule, and from who asks.
 */

interface Asker {
  headers: Headers;
  role: Role | null;
  scope: Scope;
}

let stage: AccessStage;
let own: BusyAgent;
let foreign: BusyAgent;
const none = nobody();
const askers: Record<string, Asker> = {};

beforeAll(async () => {
  // of two equal answers, both tell the same time
  vi.spyOn(Date, 'now').mockReturnValue(Date.now());
  stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  own = await busyAgent(stage, 'a');
  foreign = await busyAgent(stage, 'b');
  const all: Scope = { kind: 'everything' };
  const agents: Scope = { kind: 'agents', ids: [own.agentId], prefixes: [] };
  const session: Scope = { kind: 'session', sessionId: own.sessionId };
  const log: Scope = { kind: 'log', agentId: own.agentId };
  const made = async (role: Role, scope: Scope, kind: 'token' | 'embed' = 'token') => {
    const { secret } = await stage.credential({ kind, role, scope });
    return { headers: bearer(secret), role, scope };
  };
  Object.assign(askers, {
    nobody: { headers: {}, role: null, scope: all },
    'the owner': { headers: stage.owner, role: 'owner', scope: all },
    'somebody signed in': { headers: await stage.browser(), role: 'admin', scope: all },
    'an admin': { headers: await stage.token({ role: 'admin' }), role: 'admin', scope: all },
    'an operator': { headers: await stage.token({ role: 'operator' }), role: 'operator', scope: all },
    'a viewer': { headers: await stage.token({ role: 'viewer' }), role: 'viewer', scope: all },
    'an issuer': { headers: await stage.token({ role: 'issuer' }), role: 'issuer', scope: all },
    'the runner of A': { headers: await stage.token({ agent: own.agentId }), role: 'runner', scope: agents },
    'the runner of all that begin like A': {
      headers: await stage.token({ agentPrefix: own.agentId }),
      role: 'runner',
      scope: { ...agents, ids: [], prefixes: [own.agentId] },
    },
    'a viewer of A': await made('viewer', agents),
    'an operator of A': await made('operator', agents),
    'an embed of a session of A': await made('viewer', session, 'embed'),
    'an embed of that session that may act': await made('operator', session, 'embed'),
    'an embed of the log of A': await made('viewer', log, 'embed'),
    'an embed of the list of A': await made('viewer', { kind: 'fleet', within: agents }, 'embed'),
  } satisfies Record<string, Asker>);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await stage.close();
});

const API = '/api/v1';
const paths = [...new Set(ROUTES.map(({ pattern }) => pattern))];
const methodsOf = (pattern: string) => ROUTES.filter((route) => route.pattern === pattern).map(({ method }) => method);
const isOpen = (pattern: string) => /^(\/api\/v1)?\/(healthz|readyz)$|^\/sign-(in|out)(\/|$)/.test(pattern);

/** What a route is for, by its name. One that fits no rule is refused by everybody, and this test fails. */
function neededFor(method: Method, pattern: string): Permission | null {
  if (pattern === '/metrics') return 'observe';
  const path = pattern.slice(API.length);
  if (/^\/(me\b|openapi\.json$)/.test(path)) return 'self';
  if (path === '/embed-tokens') return 'issue';
  if (path === '/cron') return 'tend';
  if (/^\/(credentials|tokens|sign-in-codes|audit|members|storage)\b/.test(path)) return 'administer';
  if (/^\/events$|^\/agents\/:agentId\/commands\b/.test(path)) return 'speak';
  if (/^\/agents\/:agentId\/reply-obligations$|^\/attachments\//.test(path)) return 'attend';
  if (/^\/(stream|sessions|inbox|activity|agents|agui|webhook)\b/.test(path)) return method === 'GET' ? 'read' : 'act';
  return null;
}

/** The roles of the description of access, once more. */
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

/** Whether a scope has the agent or session that a path names. Only ids of A are asked about. */
function hasOwn({ kind }: Scope, pattern: string): boolean {
  const [ofAgent, ofSession] = [pattern.includes('/:agentId'), /:sessionId|\/:hash/.test(pattern)];
  if (kind === 'everything' || kind === 'agents') return true;
  if (kind === 'session') return !ofAgent;
  if (kind === 'fleet') return !ofAgent && !ofSession;
  return ofAgent ? /\/(logs|log-level)\b/.test(pattern) : !ofSession;
}

async function answer(method: Method, pattern: string, ids: BusyAgent, { headers }: Asker) {
  const { query, body } = asked(method, pattern, ids);
  const type = body instanceof Uint8Array ? { 'content-type': 'text/plain' } : undefined;
  const response = await stage.send(`${filled(pattern, ids)}${query}`, { method, as: headers, body, headers: type });
  const text = isStream(response) ? '' : await response.text();
  if (isStream(response)) await response.body?.cancel();
  return { status: response.status, head: [...response.headers], text };
}

function isStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false;
}

/** Without the ids that it was asked about, in whichever way they are written. */
function plain({ status, head, text }: { status: number; head: unknown; text: string }, ids: BusyAgent): string {
  let said = text;
  for (const [name, id] of Object.entries(ids)) {
    said = said.replaceAll(`\\"${id}\\"`, `<${name}>`);
    if (name !== 'position') said = said.replaceAll(id, `<${name}>`).replaceAll(encodeURIComponent(id), `<${name}>`);
  }
  return JSON.stringify([status, head, said]);
}

test('every route is for what its name says, and every role may what is said of it', () => {
  for (const { method, pattern, access } of ROUTES) {
    const expected = isOpen(pattern) ? 'open' : neededFor(method, pattern);
    expect([method, pattern, access]).toEqual([method, pattern, expected]);
  }
  for (const [role, may] of Object.entries(MAY)) expect([role, [...may].sort()]).toEqual([role, sorted(role as Role)]);
});

function sorted(role: Role): string[] {
  return ROLE_MAY[role].split(' ').sort();
}

test('nobody comes in, by no method and at no path, and all are told the same', async () => {
  const told = new Set<string>();
  for (const pattern of paths.filter((one) => !isOpen(one))) {
    for (const method of METHODS) {
      for (const ids of [own, none]) {
        const { status, head, text } = await answer(method, pattern, ids, askers.nobody as Asker);
        expect([method, pattern, status]).toEqual([method, pattern, 401]);
        told.add(JSON.stringify([head, text]));
      }
    }
  }
  expect(told.size).toBe(1);
  expect([...told][0]).toContain('www-authenticate');
});

test('whoever may come in is told of another method which one to use, whatever they may', async () => {
  for (const pattern of paths.filter((one) => !isOpen(one))) {
    const allow = METHODS.filter((method) => methodsOf(pattern).includes(method)).join(', ');
    for (const method of METHODS.filter((one) => !methodsOf(pattern).includes(one))) {
      for (const name of ['the owner', 'somebody signed in', 'the runner of A', 'an embed of the log of A']) {
        const { status, head } = await answer(method, pattern, foreign, askers[name] as Asker);
        const about = [name, method, pattern];
        expect([...about, status, new Headers(head).get('allow')]).toEqual([...about, 405, allow]);
      }
    }
  }
});

const api = () => ROUTES.filter(({ pattern }) => !isOpen(pattern));

test('what is somebody else’s is the same to the last byte as what there is not', async () => {
  const told: string[][] = [];
  for (const [name, asker] of Object.entries(askers)) {
    if (asker.role === null || asker.scope.kind === 'everything') continue;
    for (const { method, pattern } of api()) {
      if (pattern === `${API}/events`) continue;
      const theirs = plain(await answer(method, pattern, foreign, asker), foreign);
      const nobodys = plain(await answer(method, pattern, none, asker), none);
      if (theirs !== nobodys) told.push([name, method, pattern, theirs, nobodys]);
    }
  }
  expect(told).toEqual([]);
});

test('the same of what is not theirs in, below or beside what is', async () => {
  const told: string[][] = [];
  for (const [name, asker] of Object.entries(askers)) {
    if (asker.role === null || asker.scope.kind === 'everything') continue;
    for (const { method, pattern } of api()) {
      for (const part of Object.keys(own) as (keyof BusyAgent)[]) {
        if (pattern === `${API}/events` || !names(method, pattern, part)) continue;
        const answers: string[] = [];
        for (const ids of [foreign, none]) {
          const mixed = { ...own, [part]: ids[part] };
          answers.push(plain(await answer(method, pattern, mixed, asker), mixed));
        }
        const [theirs = '', nobodys = ''] = answers;
        if (theirs !== nobodys) told.push([name, method, pattern, part, theirs, nobodys]);
      }
    }
  }
  expect(told).toEqual([]);
});

/** Whether a request says it. */
function names(method: Method, pattern: string, part: keyof BusyAgent): boolean {
  const said = (ids: BusyAgent) => {
    const { query, body } = asked(method, pattern, ids);
    return JSON.stringify([filled(pattern, ids), query, { ...(body as object), clientId: '' }]);
  };
  return said(own) !== said({ ...own, [part]: none[part] });
}

test('each may what the role and the scope say, and nothing else', async () => {
  for (const [name, asker] of Object.entries(askers)) {
    if (asker.role === null) continue;
    for (const { method, pattern } of api()) {
      const needed = neededFor(method, pattern) ?? '';
      const may = ROLE_MAY[asker.role].split(' ').includes(needed);
      // what runners do no sign-in opens, whosever it is
      const isSignedIn = 'cookie' in asker.headers;
      const refusal = needed === 'speak' && isSignedIn ? 401 : 403;
      const expected = !may ? refusal : hasOwn(asker.scope, pattern) ? 'let in' : 404;
      const { status, text } = await answer(method, pattern, own, asker);
      // what is of people who are signed in, or at the machine, is none of a program's
      if (status === 403 && may && OF_PEOPLE.includes(`${method} ${pattern}`) && !isSignedIn) continue;
      // a frame is no place to approve anything in
      if (status === 403 && /embed/.test(name) && /\/requests\/:requestId$/.test(pattern)) continue;
      // It may be asked too late, and nothing else stands against it. Some things exist only for a while.
      const isLetIn = status < 300 || status === 409 || (status === 404 && NOT_THERE.includes(`${method} ${pattern}`));
      const came = isLetIn && expected === 'let in' ? 'let in' : status;
      expect([name, method, pattern, came, came === expected ? '' : text]).toEqual([
        name,
        method,
        pattern,
        expected,
        '',
      ]);
      if (status === 403) expect(JSON.parse(text).error).toMatchObject({ code: 'forbidden', role: asker.role });
    }
  }
});

const OF_PEOPLE = ['DELETE /api/v1/me/sign-ins', 'POST /api/v1/sign-in-codes'];

/** What they name is of nobody here: no credential and no member has that id, and no webhook is set. */
const NOT_THERE = [
  'DELETE /api/v1/credentials/:credentialId',
  'PUT /api/v1/members/:memberId',
  'POST /api/v1/webhook/test',
];

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
])('%s tells nothing of others', async (_, pathOf) => {
  for (const [name, asker] of Object.entries(askers)) {
    if (asker.role === null || asker.scope.kind === 'everything') continue;
    const [theirs, nobodys] = await Promise.all(
      [foreign, none].map(async (ids) => {
        const response = await stage.send(`${API}${pathOf(ids)}`, { as: asker.headers });
        if (isStream(response)) throw new Error(`${name} hears of others`);
        const text = (await response.text()).replaceAll(`run-${ids.agentId.at(-1)}`, '<run>');
        return plain({ status: response.status, head: [...response.headers], text }, ids);
      }),
    );
    expect([name, theirs]).toEqual([name, nobodys]);
  }
});
