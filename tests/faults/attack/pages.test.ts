import { readdirSync } from 'node:fs';
import type { NewEmbed, NewToken } from '@interlude/protocol/access';
import type { Scope } from '@interlude/protocol/scope';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { addCredential, type NewCredential } from '@/lib/server/access/credential-rows';
import { CANARY, CONSOLE, plantCanaries, requestLive, SECRET } from '@/tests/support/busy-agent';
import { root } from '../../../lib/launch/paths.mjs';
import { bearer, type Headers, type RequestOptions } from '../../support/access-stage';
import { type BusyAgent, busyAgent, missingIds } from '../../support/busy-agent';
import { type LiveServer, startLiveServer } from '../../support/live-server';

/**
 * Requests every page of app/ (discovered by file), as a document and as a navigation payload, with every kind of
 * credential. Only a live sign-in opens a page, and a page contains only data in scope.
 */
const IDS = { part: 'sessions', name: 'SessionList' };

/** Page paths with `[id]` parameters. */
const PATHS = readdirSync(`${root}/app`, { recursive: true })
  .map(String)
  .filter((file) => /(^|\/)page\.tsx$/.test(file))
  .map((file) => `/${file.replace(/\([a-z]+\)\//, '').replace(/\/?page\.tsx$/, '')}`)
  .sort();
/** Pages without data; an embed's scripts load it with the token. */
const SHELLS = PATHS.filter((path) => path.startsWith('/embed/') || path === '/signed-out');
const OWN = PATHS.filter((path) => !SHELLS.includes(path));
const FOR_ADMINS = ['access', 'audit', 'members', 'storage'].map((name) => `/settings/${name}`);

let server: LiveServer;
let own: BusyAgent;
let foreign: BusyAgent;
const none = missingIds();
/** Live sign-ins with the texts that their pages must not contain. */
const visitors: Record<string, { headers: Headers; isAdmin?: boolean; hidden: RegExp | null }> = {};
const invalidCredentials: Record<string, Headers> = {};

const ask = <Model>(path: string, sent?: RequestOptions) => requestLive<Model>(server, path, sent);

const inCookie = (secret: string): Headers => ({ cookie: `interlude=${secret}`, 'sec-fetch-site': 'none' });

beforeAll(async () => {
  server = await startLiveServer({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  own = await busyAgent({ ask }, 'a');
  foreign = await busyAgent({ ask }, 'b');
  await plantCanaries({ ask }, own);
  await plantCanaries({ ask }, foreign);
  const database = await openDatabase({ url: server.databaseUrl });
  const now = Date.now();
  const made = async (fields: Partial<NewCredential>) => {
    const all = {
      kind: 'session',
      name: 'made by a test',
      role: 'viewer',
      scope: { kind: 'everything' },
      now,
    } as const;
    const { secret } = await database.writes.run((transaction) =>
      addCredential(transaction, { ...all, expiresAt: null, ...fields }),
    );
    return secret;
  };
  const ofA: Scope = { kind: 'agents', ids: [own.agentId], prefixes: [] };
  const OF_B = /canary-[a-z]+-b\b|The \w+ of b\b/;
  const signIn = await made({ role: 'admin' });
  Object.assign(visitors, {
    'an admin': { headers: inCookie(signIn), isAdmin: true, hidden: null },
    'an operator': { headers: inCookie(await made({ role: 'operator' })), hidden: null },
    'a viewer': { headers: inCookie(await made({ role: 'viewer' })), hidden: null },
    'a redacted viewer': { headers: inCookie(await made({ redacts: true })), hidden: new RegExp(SECRET.slice(0, 12)) },
    'a viewer of A': { headers: inCookie(await made({ scope: ofA })), hidden: OF_B },
    'an operator of A': { headers: inCookie(await made({ role: 'operator', scope: ofA })), hidden: OF_B },
  } satisfies typeof visitors);
  const embed = await ask<NewEmbed>('/embed-tokens', {
    method: 'POST',
    body: { sessionId: own.sessionId, parentOrigin: CONSOLE },
  });
  const { token } = await ask<NewToken>('/tokens', { method: 'POST', body: { role: 'admin' } });
  const ended = await made({ role: 'admin', expiresAt: now - 1 });
  Object.assign(invalidCredentials, {
    'no credential': {},
    'an unknown sign-in': inCookie(`ils_${'x'.repeat(43)}`),
    'an expired sign-in': inCookie(ended),
    'the owner’s token': bearer(server.token),
    'a sign-in as a token': bearer(signIn),
    'a token as a cookie': inCookie(token),
    'an embed as a cookie': inCookie(embed.token),
    'a header of Next’s own': { 'x-middleware-subrequest': 'proxy:proxy:proxy:proxy:proxy' },
  } satisfies typeof invalidCredentials);
  await database.close();
});
afterAll(() => server.stop());

/** Document, navigation payload, prefetch payload. */
const WAYS: Headers[] = [{ accept: 'text/html' }, { rsc: '1' }, { rsc: '1', 'next-router-prefetch': '1' }];

const filled = (path: string, ids: BusyAgent) =>
  path.replace(/\[(\w+)\]/g, (_, name) => encodeURIComponent({ ...IDS, ...ids }[name as keyof BusyAgent] ?? name));

async function visit(path: string, headers: Headers): Promise<{ status: number; location: string; text: string }> {
  const response = await fetch(new URL(path, server.url), { redirect: 'manual', headers });
  const location = response.headers.get('location') ?? '';
  const text = `${JSON.stringify([...response.headers])} ${await response.text()}`;
  // Next redirects to a URL with the digest of these headers
  if (/[?&]_rsc\b/.test(location) && !path.includes('_rsc')) return visit(location, headers);
  return { status: response.status, location, text };
}

describe.each(OWN)('%s', (path) => {
  test('redirects invalid credentials to /signed-out and leaks no canary', async () => {
    for (const [name, headers] of Object.entries(invalidCredentials)) {
      for (const way of WAYS) {
        const { status, location, text } = await visit(filled(path, own), { ...way, ...headers });
        expect([name, way, status]).toEqual([name, way, 307]);
        expect([name, way, location]).toEqual([name, way, expect.stringMatching(/\/signed-out(\?|$)/)]);
        expect([name, way, CANARY.exec(text)?.[0]]).toEqual([name, way, undefined]);
      }
    }
  });

  test('shows what is in scope and treats foreign ids like unknown ids', async () => {
    for (const [name, { headers, hidden }] of Object.entries(visitors)) {
      for (const way of WAYS.slice(0, 2)) {
        const statuses: number[] = [];
        for (const ids of path.includes('[') ? [own, foreign, none] : [own]) {
          const { status, text } = await visit(filled(path, ids), { ...way, ...headers });
          expect([name, way, status < 500]).toEqual([name, way, true]);
          expect([name, way, ids.agentId, hidden?.exec(text)?.[0]]).toEqual([name, way, ids.agentId, undefined]);
          statuses.push(status);
        }
        expect([name, way, statuses[0]]).toEqual([name, way, 200]);
        if (name.endsWith('of A')) expect([name, way, statuses[1]]).toEqual([name, way, statuses[2]]);
      }
    }
  });
});

test.each(SHELLS)('%s is a shell without data for every visitor', async (path) => {
  const all = {
    ...invalidCredentials,
    ...Object.fromEntries(Object.entries(visitors).map(([name, { headers }]) => [name, headers])),
  };
  for (const [name, headers] of Object.entries(all)) {
    const { status, text } = await visit(filled(path, own), headers);
    expect([name, status, CANARY.exec(text)?.[0]]).toEqual([name, 200, undefined]);
  }
});

test.each(FOR_ADMINS)('%s is for admins only', async (path) => {
  for (const [name, { headers, isAdmin = false }] of Object.entries(visitors)) {
    const { text } = await visit(path, { accept: 'text/html', ...headers });
    expect([name, text.includes('Only admins can see this page')]).toEqual([name, !isAdmin]);
  }
});
