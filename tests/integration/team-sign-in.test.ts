import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jwtDecrypt } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { serverKey } from '@/db/server-keys';
import { secretsFromFiles } from '@/lib/launch/token.mjs';
import { createServer } from '@/lib/server/create-server';
import { FrameReader } from '@/tests/support/frames';
import { CookieBrowser, PUBLIC_URL, TeamStage, TOKEN } from '@/tests/support/team-stage';

let stage: TeamStage;

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) vi.spyOn(console, level).mockImplementation(() => {});
  stage = await TeamStage.start();
});
afterAll(() => stage.stop());

/** Signs out at the provider, as another program of the team does. */
async function signOutAtProvider(browser: CookieBrowser): Promise<void> {
  const { response } = await browser.follow(`${stage.identity.issuer}/session/end?client_id=interlude`);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(await response.text())?.[1] ?? '';
  const body = new URLSearchParams({ xsrf, logout: 'yes' });
  await browser.follow(`${stage.identity.issuer}/session/end/confirm`, { method: 'POST', body });
}

describe('the cookie of a sign-in in progress', () => {
  test('opens on every instance of a database, with any token', async () => {
    const beside = stage.serverWith('another-token-for-tests-9876543210');
    stage.identity.visitor = 'ada';
    for (const [starter, ends] of [
      [stage.server, beside],
      [beside, stage.server],
    ] as const) {
      const browser = new CookieBrowser();
      const address = new URL('/sign-in/provider', PUBLIC_URL);
      const redirect = await starter.handle(browser.request(address));
      browser.keep(address, redirect.headers);
      const { url } = await browser.follow(redirect.headers.get('location') ?? '');
      expect((await ends.handle(browser.request(url))).status).toBe(303);
    }
    await beside.close();
  });

  test('can’t be decrypted with a key derived from the token', async () => {
    const redirect = await stage.server.handle(new CookieBrowser().request(new URL('/sign-in/provider', PUBLIC_URL)));
    const [cookie = ''] = redirect.headers.getSetCookie();
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
    const { database } = await stage.server.parts();
    await expect(jwtDecrypt(sealed, await serverKey(database, 'sign-in'))).resolves.toBeTruthy();
  });
});

describe('a member of the team', () => {
  test('gets the role of their groups, and continues to their destination', async () => {
    const { browser, answer: response } = await stage.signIn('ada', '/inbox');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/inbox']);
    expect(response.headers.getSetCookie().some((one) => one.startsWith('__Host-interlude=ils_'))).toBe(true);
    expect(await stage.me(browser)).toMatchObject({ name: 'Ada Lovelace', role: 'admin', kind: 'human' });
    expect((await stage.ask(browser, '/api/v1/audit')).status).toBe(200);
  });

  test('may decide nothing as a viewer', async () => {
    const { browser } = await stage.signIn('vera');
    expect(await stage.me(browser)).toMatchObject({ role: 'viewer' });
    expect((await stage.ask(browser, '/api/v1/sessions')).status).toBe(200);
    const refused = await stage.ask(browser, '/api/v1/inbox/marks', 'POST');
    expect([refused.status, (await refused.json()).error]).toEqual([
      403,
      expect.objectContaining({ code: 'forbidden', role: 'viewer' }),
    ]);
    expect((await stage.ask(browser, '/api/v1/credentials')).status).toBe(403);
  });

  test('without an admitted group gets a page that says so, and no sign-in', async () => {
    const { browser, answer: response } = await stage.signIn('nobody');
    expect([response.status, response.headers.get('content-type')]).toEqual([403, 'text/html; charset=utf-8']);
    expect(await response.text()).toContain('none of your groups');
    expect((await stage.ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('loses every sign-in when no group admits them any more', async () => {
    const { browser } = await stage.signIn('vera');
    stage.identity.accounts.vera = { name: 'Vera', groups: ['elsewhere'] };
    const { answer: response } = await stage.signIn('vera');
    expect(response.status).toBe(403);
    expect((await stage.ask(browser, '/api/v1/me')).status).toBe(401);
    stage.identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
  });

  test('creates no sign-in links as an admin, because links would outlast them', async () => {
    const { browser } = await stage.signIn('ada');
    expect((await stage.ask(browser, '/api/v1/sign-in-codes', 'POST')).status).toBe(403);
  });

  test('has a new role in every sign-in after their groups change', async () => {
    const { browser: before } = await stage.signIn('vera');
    stage.identity.accounts.vera = { name: 'Vera', groups: ['admins'] };
    await stage.signIn('vera');
    expect(await stage.me(before)).toMatchObject({ role: 'admin' });
    stage.identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
    await stage.signIn('vera');
    expect(await stage.me(before)).toMatchObject({ role: 'viewer' });
  });

  test('keeps no token for actions of people after losing the admin role, while runners keep theirs', async () => {
    const read = async (response: Promise<Response>) => (await response).json();
    for (const end of ['groups', 'block'] as const) {
      stage.identity.accounts.vera = { name: 'Vera', groups: ['admins'] };
      const { browser } = await stage.signIn('vera');
      const { id } = await stage.me(browser);
      const make = async (body: object) => (await read(stage.ask(browser, '/api/v1/tokens', 'POST', body))).token;
      const runner = await make({ role: 'runner', agent: `made before the ${end}` });
      const admin = await make({ role: 'admin' });
      const { token: operator } = await read(stage.askBy(admin, '/api/v1/tokens', 'POST', { role: 'operator' }));
      const statuses = async () =>
        (await Promise.all([runner, admin, operator].map((token) => stage.askBy(token, '/api/v1/me')))).map(
          ({ status }) => status,
        );
      expect(await statuses()).toEqual([200, 200, 200]);
      if (end === 'groups') {
        stage.identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
        await stage.signIn('vera');
      } else {
        const { browser: ada } = await stage.signIn('ada');
        expect((await stage.ask(ada, `/api/v1/members/${id}`, 'PUT', { blocked: true })).status).toBe(200);
      }
      expect(await statuses()).toEqual([200, 401, 401]);
    }
    const { browser: ada } = await stage.signIn('ada');
    const { members } = await (await stage.ask(ada, '/api/v1/members')).json();
    const vera = members.find(({ name }: { name: string }) => name === 'Vera');
    await stage.ask(ada, `/api/v1/members/${vera.id}`, 'PUT', { blocked: false });
    stage.identity.accounts.vera = { name: 'Vera', groups: ['staff'] };
  });

  test('a member loses requests and streams when the provider signs them out', async () => {
    const { browser } = await stage.signIn('ada');
    const stream = new FrameReader(
      (await stage.ask(browser, '/api/v1/stream?topic=fleet')).body as ReadableStream<Uint8Array>,
    );
    await stream.frame('up-to-date');
    await signOutAtProvider(browser);
    expect((await stream.frame('bye')).data).toEqual({ reason: 'unauthorized' });
    expect((await stage.ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('continues to the provider’s sign-out when signing out here', async () => {
    const { browser } = await stage.signIn('ada');
    const response = await stage.ask(browser, '/sign-out', 'POST');
    // Not by a redirect: the page's own form-action policy would block it.
    expect(response.headers.get('refresh')).toContain(`${stage.identity.issuer}/session/end?`);
    expect(response.headers.get('clear-site-data')).toBe('"storage"');
    expect((await stage.ask(browser, '/api/v1/me')).status).toBe(401);
  });

  test('gets a page with status 400 for a forged callback', async () => {
    const response = await stage.server.handle(
      new Request(`${PUBLIC_URL}/sign-in/callback?state=made-up&code=x`, {
        headers: { host: 'interlude.example.com' },
      }),
    );
    expect([response.status, response.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
  });
});

test('sign-in without a provider says so, and the link works', async () => {
  const other = createServer({ INTERLUDE_TOKEN: TOKEN, INTERLUDE_DATA_DIR: mkdtempSync(join(stage.folder, 'other-')) });
  const response = await other.handle(
    new Request('http://127.0.0.1/sign-in/provider', { headers: { host: '127.0.0.1' } }),
  );
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('No identity provider')]);
  await other.close();
});

test('the provider’s secret may be in a file, and a missing file is reported at the start', () => {
  const file = join(stage.folder, 'client-secret');
  writeFileSync(file, 'from a file\n');
  const settings = { INTERLUDE_OIDC_CLIENT_SECRET_FILE: file };
  expect(secretsFromFiles(settings)).toEqual({ INTERLUDE_OIDC_CLIENT_SECRET: 'from a file' });
  expect(secretsFromFiles({ ...settings, INTERLUDE_OIDC_CLIENT_SECRET: 'set' })).toEqual({});
  expect(() => secretsFromFiles({ INTERLUDE_OIDC_CLIENT_SECRET_FILE: `${file}-gone` })).toThrow('(ENOENT)');
});
