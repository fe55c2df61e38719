import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jwtDecrypt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { serverKey } from '@/db/server-keys';
import { OidcSignIn } from '@/lib/access/oidc/oidc-sign-in';
import { open } from '@/lib/access/oidc/sealed';
import { secretsFromFiles } from '@/lib/launch/token.mjs';
import type { Me } from '@/lib/protocol/access';
import { createServer, type Server } from '@/lib/server/create-server';
import { CookieBrowser } from '@/tests/support/cookie-browser';
import { FrameReader } from '@/tests/support/frames';
import { IdentityProvider } from '@/tests/support/identity-provider';

const PUBLIC_URL = 'https://interlude.example.com';
const TOKEN = 'a-token-for-tests-0123456789';

let identity: IdentityProvider;
let server: Server;
let folder: string;
/** Where the provider calls: in front of the server, on loopback. */
const backChannel = createHttpServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const headers = { host: 'interlude.example.com', 'content-type': 'application/x-www-form-urlencoded' };
  const sent = new Request(`${PUBLIC_URL}/sign-in/back-channel-logout`, { method: 'POST', headers, body });
  response.writeHead((await server.handle(sent)).status).end();
});

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) vi.spyOn(console, level).mockImplementation(() => {});
  await new Promise<void>((listening) => backChannel.listen(0, '127.0.0.1', listening));
  const backChannelUrl = `http://127.0.0.1:${(backChannel.address() as AddressInfo).port}/`;
  const client = { id: 'interlude', secret: 'the secret of interlude', publicUrl: PUBLIC_URL, backChannelUrl };
  identity = await IdentityProvider.start(
    {
      ada: { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['admins'] },
      vera: { name: 'Vera', groups: ['staff'] },
      nobody: { name: 'No Body', groups: ['elsewhere'] },
    },
    [client],
  );
  folder = mkdtempSync(join(tmpdir(), 'interlude-team-'));
  server = serverWith(TOKEN);
});
afterAll(async () => {
  await server.close();
  await identity.stop();
  backChannel.close();
  rmSync(folder, { recursive: true });
});

function serverWith(token: string, env: Record<string, string> = {}): Server {
  return createServer({
    INTERLUDE_TOKEN: token,
    INTERLUDE_DATA_DIR: folder,
    INTERLUDE_OIDC_ISSUER: identity.issuer,
    INTERLUDE_OIDC_CLIENT_ID: 'interlude',
    INTERLUDE_OIDC_CLIENT_SECRET: 'the secret of interlude',
    INTERLUDE_OIDC_SCOPES: 'openid profile email groups',
    INTERLUDE_OIDC_ADMIN_GROUPS: 'admins',
    INTERLUDE_OIDC_VIEWER_GROUPS: 'staff',
    INTERLUDE_PUBLIC_URL: PUBLIC_URL,
    ...env,
  });
}

/** Goes through the provider and back. */
async function signIn(visitor: string, next = '/'): Promise<{ browser: CookieBrowser; answer: Response }> {
  identity.visitor = visitor;
  const browser = new CookieBrowser();
  const address = new URL(`/sign-in/provider?next=${encodeURIComponent(next)}`, PUBLIC_URL);
  const begun = await server.handle(browser.request(address));
  browser.keep(address, begun.headers);
  const { url } = await browser.follow(begun.headers.get('location') ?? '');
  const answer = await server.handle(browser.request(url));
  browser.keep(url, answer.headers);
  return { browser, answer };
}

function ask(browser: CookieBrowser, path: string, method = 'GET', body?: object): Promise<Response> {
  const request = browser.request(new URL(path, PUBLIC_URL));
  const headers = new Headers(request.headers);
  headers.set('sec-fetch-site', 'same-origin');
  return server.handle(new Request(request.url, { method, headers, ...sent(headers, body) }));
}

/** As a program does. */
function askBy(token: string, path: string, method = 'GET', body?: object): Promise<Response> {
  const headers = new Headers({ authorization: `Bearer ${token}` });
  return server.handle(new Request(new URL(path, PUBLIC_URL), { method, headers, ...sent(headers, body) }));
}

function sent(headers: Headers, body?: object): { body?: string } {
  if (body === undefined) return {};
  headers.set('content-type', 'application/json');
  return { body: JSON.stringify(body) };
}

/** As somebody does who signs out of another program of the team. */
async function signOutAtProvider(browser: CookieBrowser): Promise<void> {
  const { response } = await browser.follow(`${identity.issuer}/session/end?client_id=interlude`);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(await response.text())?.[1] ?? '';
  const body = new URLSearchParams({ xsrf, logout: 'yes' });
  await browser.follow(`${identity.issuer}/session/end/confirm`, { method: 'POST', body });
}

const me = async (browser: CookieBrowser): Promise<Me> => (await ask(browser, '/api/v1/me')).json();

describe('the cookie of a sign-in in progress', () => {
  test('opens on every instance of one database, whatever its token', async () => {
    const beside = serverWith('another-token-for-tests-9876543210');
    identity.visitor = 'ada';
    for (const [begins, ends] of [
      [server, beside],
      [beside, server],
    ] as const) {
      const browser = new CookieBrowser();
      const address = new URL('/sign-in/provider', PUBLIC_URL);
      const begun = await begins.handle(browser.request(address));
      browser.keep(address, begun.headers);
      const { url } = await browser.follow(begun.headers.get('location') ?? '');
      expect((await ends.handle(browser.request(url))).status).toBe(303);
    }
    await beside.close();
  });

  test('opens with nothing that can be derived from the token', async () => {
    const begun = await server.handle(new CookieBrowser().request(new URL('/sign-in/provider', PUBLIC_URL)));
    const [cookie = ''] = begun.headers.getSetCookie();
    const sealed = /=([^;]+)/.exec(cookie)?.[1] ?? '';
    const token = new TextEncoder().encode(TOKEN);
    const material = await crypto.subtle.importKey('raw', token, 'HKDF', false, ['deriveBits']);
    const hkdf = async (info: string) => {
      const how = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: new TextEncoder().encode(info) };
      return new Uint8Array(await crypto.subtle.deriveBits(how, material, 256));
    };
    const guesses = [
      await hkdf('interlude sign-in in progress, A256GCM'),
      await hkdf(''),
      new Uint8Array(await crypto.subtle.digest('SHA-256', token)),
      token.slice(0, 32),
    ];
    for (const guess of guesses) await expect(jwtDecrypt(sealed, guess)).rejects.toThrow();
    const { database } = await server.parts();
    await expect(jwtDecrypt(sealed, await serverKey(database, 'sign-in'))).resolves.toBeTruthy();
  });
});

describe('a person of the team', () => {
  test('comes in with the role of their groups, and goes on to where they wanted', async () => {
    const { browser, answer } = await signIn('ada', '/inbox');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/inbox']);
    expect(answer.headers.getSetCookie().some((one) => one.startsWith('__Host-interlude=ils_'))).toBe(true);
    expect(await me(browser)).toMatchObject({ name: 'Ada Lovelace', role: 'admin', kind: 'human' });
    expect((await ask(browser, '/api/v1/audit')).status).toBe(200);
  });

  test('who only reads may decide nothing', async () => {
    const { browser } = await signIn('vera');
    expect(await me(browser)).toMatchObject({ role: 'viewer' });
    expect((await ask(browser, '/api/v1/sessions')).status).toBe(200);
    const refused = await ask(browser, '/api/v1/inbox/marks', 'POST');
    expect([refused.status, (await refused.json()).error]).toEqual([
      403,
      expect.objectContaining({ code: 'forbidden', role: 'viewer' }),
    ]);
    expect((await ask(browser, '/api/v1/credentials')).status).toBe(403);
  });

  test('of no group that may use it is told so on a page, and is not in', async () => {
    const { browser, answer } = await signIn('nobody');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([403, 'text/html; charset=utf-8']);
    expect(await answer.text()).toContain('none of your groups');
    expect((await ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('whom no group lets in any more is out, also where they had come in before', async () => {
    const { browser } = await signIn('vera');
    identity.accounts.vera = { name: 'Vera', groups: ['elsewhere'] };
    const { answer } = await signIn('vera');
    expect(answer.status).toBe(403);
    expect((await ask(browser, '/api/v1/me')).status).toBe(401);
    identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
  });

  test('who is an admin of it makes no links to sign in, which would outlast them', async () => {
    const { browser } = await signIn('ada');
    expect((await ask(browser, '/api/v1/sign-in-codes', 'POST')).status).toBe(403);
  });

  test('whose groups change has the new role in every sign-in from the next one on', async () => {
    const { browser: before } = await signIn('vera');
    identity.accounts.vera = { name: 'Vera', groups: ['admins'] };
    await signIn('vera');
    expect(await me(before)).toMatchObject({ role: 'admin' });
    identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
    await signIn('vera');
    expect(await me(before)).toMatchObject({ role: 'viewer' });
  });

  test('who is no admin any more keeps no token that does what people do; runners keep theirs', async () => {
    const read = async (answer: Promise<Response>) => (await answer).json();
    for (const end of ['groups', 'block'] as const) {
      identity.accounts.vera = { name: 'Vera', groups: ['admins'] };
      const { browser } = await signIn('vera');
      const { id } = await me(browser);
      const make = async (body: object) => (await read(ask(browser, '/api/v1/tokens', 'POST', body))).token;
      const runner = await make({ role: 'runner', agent: `made before the ${end}` });
      const admin = await make({ role: 'admin' });
      const { token: operator } = await read(askBy(admin, '/api/v1/tokens', 'POST', { role: 'operator' }));
      const statuses = async () =>
        (await Promise.all([runner, admin, operator].map((token) => askBy(token, '/api/v1/me')))).map(
          ({ status }) => status,
        );
      expect(await statuses()).toEqual([200, 200, 200]);
      if (end === 'groups') {
        identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
        await signIn('vera');
      } else {
        const { browser: ada } = await signIn('ada');
        expect((await ask(ada, `/api/v1/members/${id}`, 'PUT', { blocked: true })).status).toBe(200);
      }
      expect(await statuses()).toEqual([200, 401, 401]);
    }
    const { browser: ada } = await signIn('ada');
    const { members } = await (await ask(ada, '/api/v1/members')).json();
    const vera = members.find(({ name }: { name: string }) => name === 'Vera');
    await ask(ada, `/api/v1/members/${vera.id}`, 'PUT', { blocked: false });
    identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
  });

  test('whom the provider signs out is out here: requests and streams', async () => {
    const { browser } = await signIn('ada');
    const stream = new FrameReader(
      (await ask(browser, '/api/v1/stream?topic=fleet')).body as ReadableStream<Uint8Array>,
    );
    await stream.frame('up-to-date');
    await signOutAtProvider(browser);
    expect((await stream.frame('bye')).data).toEqual({ reason: 'unauthorized' });
    expect((await ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('who signs out here goes on to sign out at the provider', async () => {
    const { browser } = await signIn('ada');
    const answer = await ask(browser, '/sign-out', 'POST');
    // not by a redirect, which the page's own policy for forms would not let go elsewhere
    expect(answer.headers.get('refresh')).toContain(`${identity.issuer}/session/end?`);
    expect(answer.headers.get('clear-site-data')).toBe('"storage"');
    expect((await ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('a forged way back is a bad request, told as a page', async () => {
    const answer = await server.handle(
      new Request(`${PUBLIC_URL}/sign-in/callback?state=made-up&code=x`, {
        headers: { host: 'interlude.example.com' },
      }),
    );
    expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
  });
});

describe('the sign-in of a member', () => {
  const HOUR_MS = 3_600_000;
  const vera = (...groups: string[]) => {
    identity.accounts.vera = { name: 'Vera', groups };
  };

  /** Makes the question for the role due, for every sign-in that can be asked about. */
  async function passAnHour(): Promise<void> {
    const { database, credentials } = await server.parts();
    await database.writes.run(async (transaction) => {
      await transaction.execute({
        sql: `UPDATE credentials SET role_due_at = ?1, role_checked_at = ?1 - ${HOUR_MS} WHERE role_due_at IS NOT NULL`,
        args: [Date.now()],
      });
      await transaction.execute('UPDATE access SET version = version + 1');
    });
    await credentials.changed();
  }

  /** The columns of the newest sign-in. */
  async function newest() {
    const { reader } = (await server.parts()).database;
    const { rows } = await reader.execute(
      "SELECT * FROM credentials WHERE kind = 'session' ORDER BY created_at DESC, rowid DESC LIMIT 1",
    );
    return rows[0];
  }

  beforeEach(() => {
    vera('staff');
    identity.givesRefreshTokens = true;
  });

  test('ends twelve hours after it began, unless the environment says otherwise', async () => {
    const lifetimeOf = (one: Awaited<ReturnType<typeof newest>>) => Number(one?.expires_at) - Number(one?.created_at);
    await signIn('vera');
    expect(Math.round(lifetimeOf(await newest()) / HOUR_MS)).toBe(12);
    const usual = server;
    server = serverWith(TOKEN, { INTERLUDE_SESSION_HOURS: '2' });
    await signIn('vera');
    expect(Math.round(lifetimeOf(await newest()) / HOUR_MS)).toBe(2);
    await server.close();
    server = usual;
  });

  test('keeps the refresh token sealed, and shows it to nobody', async () => {
    const { browser } = await signIn('ada');
    const sealed = String((await newest())?.refresh_token);
    const { database } = await server.parts();
    const opened = async (key: 'refresh-token' | 'sign-in') =>
      open<{ refreshToken: string }>(sealed, await serverKey(database, key), {});
    const { refreshToken } = await opened('refresh-token');
    expect(sealed).not.toContain(refreshToken);
    await expect(opened('sign-in')).rejects.toThrow();
    const answers = ['/api/v1/credentials', '/api/v1/me', '/api/v1/me/sign-ins', '/api/v1/members'].map(async (path) =>
      (await ask(browser, path)).text(),
    );
    for (const answer of await Promise.all(answers)) {
      expect(answer).not.toContain(sealed);
      expect(answer).not.toMatch(/refresh/i);
    }
  });

  test('forgets the refresh token when it ends', async () => {
    const { browser } = await signIn('ada');
    await ask(browser, '/sign-out', 'POST');
    expect(await newest()).toMatchObject({ refresh_token: null, revoked_at: expect.any(Number) });
    await signIn('vera');
    const id = String((await newest())?.id);
    const { database } = await server.parts();
    await database.writes.run((transaction) =>
      transaction.execute({ sql: 'UPDATE credentials SET expires_at = 1 WHERE id = ?', args: [id] }),
    );
    await signIn('ada');
    const { rows } = await database.reader.execute({
      sql: 'SELECT refresh_token FROM credentials WHERE id = ?',
      args: [id],
    });
    expect(rows).toEqual([{ refresh_token: null }]);
  });

  test('has a new role once an hour has passed, before the next request is answered', async () => {
    const { browser } = await signIn('vera');
    const { browser: beside } = await signIn('vera');
    vera('admins');
    expect(await me(browser)).toMatchObject({ role: 'viewer' });
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'admin' });
    expect(await me(beside)).toMatchObject({ role: 'admin' });
    expect(Number((await newest())?.role_due_at)).toBeGreaterThan(Date.now() + HOUR_MS / 2);
  });

  test('ends with all others of that person when no group lets them in any more', async () => {
    const { browser } = await signIn('vera');
    const { browser: beside } = await signIn('vera');
    vera('elsewhere');
    await passAnHour();
    expect((await ask(browser, '/api/v1/sessions')).status).toBe(401);
    expect((await ask(beside, '/api/v1/sessions')).status).toBe(401);
    const { entries } = await (await askBy(TOKEN, '/api/v1/audit?action=end%20sign-in')).json();
    expect(entries[0]).toMatchObject({ actor: 'The identity provider' });
  });

  test('ends when the provider has ended it', async () => {
    const { browser } = await signIn('vera');
    delete identity.accounts.vera;
    await passAnHour();
    expect((await ask(browser, '/api/v1/sessions')).status).toBe(401);
  });

  test('ends while only a stream is open by it', async () => {
    const { browser } = await signIn('vera');
    const stream = new FrameReader(
      (await ask(browser, '/api/v1/stream?topic=fleet')).body as ReadableStream<Uint8Array>,
    );
    await stream.frame('up-to-date');
    vera('elsewhere');
    await passAnHour();
    expect((await stream.frame('bye')).data).toEqual({ reason: 'unauthorized' });
  });

  test('goes on while the provider is away, which is asked again later and later', async () => {
    const { browser } = await signIn('vera');
    vera('admins');
    const waits: number[] = [];
    const minutesUntilDue = async () => Math.round((Number((await newest())?.role_due_at) - Date.now()) / 60_000);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await identity.stop();
    for (const overdueMinutes of [0, 5, 24 * 60]) {
      await passAnHour();
      const { database } = await server.parts();
      await database.writes.run((transaction) =>
        transaction.execute({
          sql: 'UPDATE credentials SET role_checked_at = role_checked_at - ? WHERE role_due_at IS NOT NULL',
          args: [overdueMinutes * 60_000],
        }),
      );
      expect(await me(browser)).toMatchObject({ role: 'viewer' });
      waits.push(await minutesUntilDue());
    }
    expect(waits).toEqual([1, 5, 30]);
    await identity.startAgain();
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'admin' });
  });

  test('keeps its role and its name while the provider tells neither', async () => {
    const { browser } = await signIn('vera');
    identity.accounts.vera = {};
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'viewer', name: 'Vera' });
    const { members } = await (await askBy(TOKEN, '/api/v1/members')).json();
    expect(members.map(({ name }: { name: string }) => name)).toContain('Vera');
  });

  test('goes on with a new refresh token, even if the rest of that refresh failed', async () => {
    const { browser } = await signIn('vera');
    vera('admins');
    identity.hidesPeople = true;
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'viewer' });
    identity.hidesPeople = false;
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'admin' });
  });

  test('sends its refresh token to no other provider or client', async () => {
    const { browser } = await signIn('vera');
    await passAnHour();
    const before = identity.refreshes;
    const other = serverWith(TOKEN, { INTERLUDE_OIDC_CLIENT_ID: 'another' });
    const refresh = vi.spyOn(OidcSignIn.prototype, 'refresh');
    const request = browser.request(new URL('/api/v1/me', PUBLIC_URL));
    const headers = { ...Object.fromEntries(request.headers), 'sec-fetch-site': 'same-origin' };
    expect((await other.handle(new Request(request, { headers }))).status).toBe(200);
    expect([refresh.mock.calls, identity.refreshes]).toEqual([[], before]);
    refresh.mockRestore();
    await other.close();
  });

  test('is asked about by one of two instances, and once', async () => {
    const beside = serverWith('another-token-for-tests-9876543210');
    const { browser } = await signIn('vera');
    await passAnHour();
    await (await beside.parts()).credentials.changed();
    const before = identity.refreshes;
    const requests = Array.from({ length: 20 }, () => {
      const request = browser.request(new URL('/api/v1/me', PUBLIC_URL));
      return [server, beside].map((one) =>
        one.handle(
          new Request(request, {
            headers: { ...Object.fromEntries(request.headers), 'sec-fetch-site': 'same-origin' },
          }),
        ),
      );
    });
    const statuses = (await Promise.all(requests.flat())).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(identity.refreshes - before).toBe(1);
    await beside.close();
  });

  test('without a refresh token is asked about at the next sign-in', async () => {
    identity.givesRefreshTokens = false;
    const { browser } = await signIn('vera');
    expect(await newest()).toMatchObject({ refresh_token: null, role_due_at: null });
    vera('admins');
    await passAnHour();
    expect(await me(browser)).toMatchObject({ role: 'viewer' });
    await signIn('vera');
    expect(await me(browser)).toMatchObject({ role: 'admin' });
  });
});

test('where no provider is set, that is said, and the link works', async () => {
  const other = createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: mkdtempSync(join(folder, 'other-')) });
  const answer = await other.handle(
    new Request('http://127.0.0.1/sign-in/provider', { headers: { host: '127.0.0.1' } }),
  );
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('No identity provider')]);
  await other.close();
});

test('the secret of the provider may be in a file, and one that is not there is told at the start', () => {
  const file = join(folder, 'client-secret');
  writeFileSync(file, 'from a file\n');
  const asked = { INTERLUDE_OIDC_CLIENT_SECRET_FILE: file };
  expect(secretsFromFiles(asked)).toEqual({ INTERLUDE_OIDC_CLIENT_SECRET: 'from a file' });
  expect(secretsFromFiles({ ...asked, INTERLUDE_OIDC_CLIENT_SECRET: 'set' })).toEqual({});
  expect(() => secretsFromFiles({ INTERLUDE_OIDC_CLIENT_SECRET_FILE: `${file}-gone` })).toThrow('(ENOENT)');
});
