import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { serverKey } from '@/db/server-keys';
import { OidcSignIn } from '@/lib/server/access/oidc/oidc-sign-in';
import { open } from '@/lib/server/access/oidc/pending-sign-ins';
import { FrameReader } from '@/tests/support/frames';
import { PUBLIC_URL, TeamStage, TOKEN } from '@/tests/support/team-stage';

let stage: TeamStage;

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) vi.spyOn(console, level).mockImplementation(() => {});
  stage = await TeamStage.start();
});
afterAll(() => stage.stop());

const HOUR_MS = 3_600_000;
const identity = (...groups: string[]) => {
  stage.identity.accounts.vera = { name: 'Vera', groups };
};

/** Makes the role check due for every sign-in that has one. */
async function passAnHour(): Promise<void> {
  const { database, credentials } = await stage.server.parts();
  await database.writes.run(async (transaction) => {
    await transaction.execute({
      sql: `UPDATE credentials SET role_due_at = ?1, role_checked_at = ?1 - ${HOUR_MS} WHERE role_due_at IS NOT NULL`,
      args: [Date.now()],
    });
    await transaction.execute('UPDATE access SET version = version + 1');
  });
  await credentials.invalidate();
}

/** The columns of the newest sign-in. */
async function newest() {
  const { reader } = (await stage.server.parts()).database;
  const { rows } = await reader.execute(
    "SELECT * FROM credentials WHERE kind = 'session' ORDER BY created_at DESC, rowid DESC LIMIT 1",
  );
  return rows[0];
}

beforeEach(() => {
  identity('staff');
  stage.identity.givesRefreshTokens = true;
});

test('the sign-in of a member ends after twelve hours, or as the environment sets', async () => {
  const lifetimeOf = (one: Awaited<ReturnType<typeof newest>>) => Number(one?.expires_at) - Number(one?.created_at);
  await stage.signIn('vera');
  expect(Math.round(lifetimeOf(await newest()) / HOUR_MS)).toBe(12);
  const usual = stage.server;
  stage.server = stage.serverWith(TOKEN, { INTERLUDE_SESSION_HOURS: '2' });
  await stage.signIn('vera');
  expect(Math.round(lifetimeOf(await newest()) / HOUR_MS)).toBe(2);
  await stage.server.close();
  stage.server = usual;
});

test('the sign-in of a member stores the refresh token encrypted, and returns it nowhere', async () => {
  const { browser } = await stage.signIn('ada');
  const sealed = String((await newest())?.refresh_token);
  const { database } = await stage.server.parts();
  const opened = async (key: 'refresh-token' | 'sign-in') =>
    open<{ refreshToken: string }>(sealed, await serverKey(database, key), {});
  const { refreshToken } = await opened('refresh-token');
  expect(sealed).not.toContain(refreshToken);
  await expect(opened('sign-in')).rejects.toThrow();
  const answers = ['/api/v1/credentials', '/api/v1/me', '/api/v1/me/sign-ins', '/api/v1/members'].map(async (path) =>
    (await stage.ask(browser, path)).text(),
  );
  for (const answer of await Promise.all(answers)) {
    expect(answer).not.toContain(sealed);
    expect(answer).not.toMatch(/refresh/i);
  }
});

test('the sign-in of a member deletes the refresh token when it ends', async () => {
  const { browser } = await stage.signIn('ada');
  await stage.ask(browser, '/sign-out', 'POST');
  expect(await newest()).toMatchObject({ refresh_token: null, revoked_at: expect.any(Number) });
  await stage.signIn('vera');
  const id = String((await newest())?.id);
  const { database } = await stage.server.parts();
  await database.writes.run((transaction) =>
    transaction.execute({ sql: 'UPDATE credentials SET expires_at = 1 WHERE id = ?', args: [id] }),
  );
  await stage.signIn('ada');
  const { rows } = await database.reader.execute({
    sql: 'SELECT refresh_token FROM credentials WHERE id = ?',
    args: [id],
  });
  expect(rows).toEqual([{ refresh_token: null }]);
});

test('the sign-in of a member has its new role an hour later, before the next response', async () => {
  const { browser } = await stage.signIn('vera');
  const { browser: beside } = await stage.signIn('vera');
  identity('admins');
  expect(await stage.me(browser)).toMatchObject({ role: 'viewer' });
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'admin' });
  expect(await stage.me(beside)).toMatchObject({ role: 'admin' });
  expect(Number((await newest())?.role_due_at)).toBeGreaterThan(Date.now() + HOUR_MS / 2);
});

test('the sign-in of a member ends with all others of that person when no group admits them', async () => {
  const { browser } = await stage.signIn('vera');
  const { browser: beside } = await stage.signIn('vera');
  identity('elsewhere');
  await passAnHour();
  expect((await stage.ask(browser, '/api/v1/sessions')).status).toBe(401);
  expect((await stage.ask(beside, '/api/v1/sessions')).status).toBe(401);
  const { entries } = await (await stage.askBy(TOKEN, '/api/v1/audit?action=end%20sign-in')).json();
  expect(entries[0]).toMatchObject({ actor: 'The identity provider' });
});

test('the sign-in of a member ends when the provider has ended it', async () => {
  const { browser } = await stage.signIn('vera');
  delete stage.identity.accounts.vera;
  await passAnHour();
  expect((await stage.ask(browser, '/api/v1/sessions')).status).toBe(401);
});

test('the sign-in of a member ends during an open stream', async () => {
  const { browser } = await stage.signIn('vera');
  const stream = new FrameReader(
    (await stage.ask(browser, '/api/v1/stream?topic=fleet')).body as ReadableStream<Uint8Array>,
  );
  await stream.frame('up-to-date');
  identity('elsewhere');
  await passAnHour();
  expect((await stream.frame('bye')).data).toEqual({ reason: 'unauthorized' });
});

test('the sign-in of a member continues while the provider is away, with increasing delays', async () => {
  const { browser } = await stage.signIn('vera');
  identity('admins');
  const waits: number[] = [];
  const minutesUntilDue = async () => Math.round((Number((await newest())?.role_due_at) - Date.now()) / 60_000);
  vi.spyOn(console, 'error').mockImplementation(() => {});
  await stage.identity.stop();
  for (const overdueMinutes of [0, 5, 24 * 60]) {
    await passAnHour();
    const { database } = await stage.server.parts();
    await database.writes.run((transaction) =>
      transaction.execute({
        sql: 'UPDATE credentials SET role_checked_at = role_checked_at - ? WHERE role_due_at IS NOT NULL',
        args: [overdueMinutes * 60_000],
      }),
    );
    expect(await stage.me(browser)).toMatchObject({ role: 'viewer' });
    waits.push(await minutesUntilDue());
  }
  expect(waits).toEqual([1, 5, 30]);
  await stage.identity.startAgain();
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'admin' });
});

test('the sign-in of a member keeps its role and name when the provider returns neither', async () => {
  const { browser } = await stage.signIn('vera');
  stage.identity.accounts.vera = {};
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'viewer', name: 'Vera' });
  const { members } = await (await stage.askBy(TOKEN, '/api/v1/members')).json();
  expect(members.map(({ name }: { name: string }) => name)).toContain('Vera');
});

test('the sign-in of a member uses a new refresh token even if the rest of that refresh failed', async () => {
  const { browser } = await stage.signIn('vera');
  identity('admins');
  stage.identity.hidesPeople = true;
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'viewer' });
  stage.identity.hidesPeople = false;
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'admin' });
});

test('the sign-in of a member sends its refresh token to no other provider or client', async () => {
  const { browser } = await stage.signIn('vera');
  await passAnHour();
  const before = stage.identity.refreshes;
  const other = stage.serverWith(TOKEN, { INTERLUDE_OIDC_CLIENT_ID: 'another' });
  const refresh = vi.spyOn(OidcSignIn.prototype, 'refresh');
  const request = browser.request(new URL('/api/v1/me', PUBLIC_URL));
  const headers = { ...Object.fromEntries(request.headers), 'sec-fetch-site': 'same-origin' };
  expect((await other.handle(new Request(request, { headers }))).status).toBe(200);
  expect([refresh.mock.calls, stage.identity.refreshes]).toEqual([[], before]);
  refresh.mockRestore();
  await other.close();
});

test('the sign-in of a member is refreshed once by one of two instances', async () => {
  const beside = stage.serverWith('another-token-for-tests-9876543210');
  const { browser } = await stage.signIn('vera');
  await passAnHour();
  await (await beside.parts()).credentials.invalidate();
  const before = stage.identity.refreshes;
  const requests = Array.from({ length: 20 }, () => {
    const request = browser.request(new URL('/api/v1/me', PUBLIC_URL));
    return [stage.server, beside].map((one) =>
      one.handle(
        new Request(request, {
          headers: { ...Object.fromEntries(request.headers), 'sec-fetch-site': 'same-origin' },
        }),
      ),
    );
  });
  const statuses = (await Promise.all(requests.flat())).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(stage.identity.refreshes - before).toBe(1);
  await beside.close();
});

test('the sign-in of a member without a refresh token is checked at the next sign-in', async () => {
  stage.identity.givesRefreshTokens = false;
  const { browser } = await stage.signIn('vera');
  expect(await newest()).toMatchObject({ refresh_token: null, role_due_at: null });
  identity('admins');
  await passAnHour();
  expect(await stage.me(browser)).toMatchObject({ role: 'viewer' });
  await stage.signIn('vera');
  expect(await stage.me(browser)).toMatchObject({ role: 'admin' });
});
