import type { Role } from '@interlude/protocol/scope';
import type { InStatement } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { describeAction, withAudit } from '@/lib/server/access/audit';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { OWNER, type Principal } from '@/lib/server/access/principal';
import { AccessStage, bearer } from '../../support/access-stage';

/** Offset of the wall clock. */
let moved = 0;
let stage: AccessStage;
beforeEach(async () => {
  moved = 0;
  const wall = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => wall() + moved);
  stage = await AccessStage.start();
});
afterEach(async () => {
  await stage.close();
  vi.restoreAllMocks();
});

const me = (as: Record<string, string>) => stage.status('/me', { as });

describe('a sign-in link', () => {
  const open = (code: string, headers = {}) => stage.send(`/sign-in?token=${code}`, { as: {}, headers });
  const isSignedIn = (response: Response) => response.headers.get('set-cookie')?.includes('interlude=ils_') ?? false;

  test('works once', async () => {
    const code = await stage.code();
    expect([isSignedIn(await open(code)), isSignedIn(await open(code))]).toEqual([true, false]);
  });

  test('expires after five minutes', async () => {
    const [soon, late] = [await stage.code(), await stage.code()];
    moved = 4 * 60_000;
    expect(isSignedIn(await open(soon))).toBe(true);
    moved = 5 * 60_000 + 1_000;
    expect(isSignedIn(await open(late))).toBe(false);
  });

  test('asks for confirmation when another site opened it, and still works afterwards', async () => {
    const code = await stage.code();
    const site = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    const asked = await open(code, site);
    expect([asked.status, isSignedIn(asked)]).toEqual([200, false]);
    expect(isSignedIn(await open(code))).toBe(true);
  });
});

describe('a credential', () => {
  test('is refused once revoked', async () => {
    const { id, ...headers } = await stage.token({ role: 'viewer' });
    expect(await me(headers)).toBe(200);
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    expect(await me(headers)).toBe(401);
  });

  test('is refused once expired', async () => {
    const headers = bearer((await stage.credential({ expiresAt: Date.now() + 60_000 })).secret);
    expect(await me(headers)).toBe(200);
    moved = 60_001;
    expect(await me(headers)).toBe(401);
  });

  test('is refused after its idle timeout', async () => {
    const { secret } = await stage.credential({ kind: 'session', idleMs: 60_000 });
    const cookie = { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' };
    expect(await me(cookie)).toBe(200);
    moved = 60_001;
    expect(await me(cookie)).toBe(401);
  });

  test.each(['shared', 'perRequest'] as const)(
    'waits at most two seconds for its role, on a host that is %s',
    async (kind) => {
      const due = { roleDueAt: 1, roleCheckedAt: 1, refreshToken: 'sealed' };
      const { secret } = await stage.credential({ kind: 'session', ...due });
      const refreshRole = vi.fn(() => new Promise<void>(() => {}));
      const book = new CredentialCache({ database: stage.parts.database, now: Date.now, kind, refreshRole });
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      let found: Principal | null = null;
      void Promise.resolve(book.find(secret)).then((principal) => {
        found = principal;
      });
      while (refreshRole.mock.calls.length === 0) await new Promise(setImmediate);
      await vi.advanceTimersByTimeAsync(2_000);
      vi.useRealTimers();
      await expect.poll(() => found).toMatchObject({ role: 'viewer' });
      book.close();
    },
  );

  test('ends its streams when revoked', async () => {
    const { id, ...headers } = await stage.token({ role: 'viewer' });
    const reader = await stage.stream('/stream?topic=fleet', headers);
    await reader.frame('up-to-date');
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    expect((await reader.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
  });

  test('ends a stream that starts while its revocation is being read', async () => {
    const { id, secret } = await stage.credential({ role: 'viewer' });
    const { database } = stage.parts;
    let meanwhile = () => {};
    const reader = Object.create(database.reader, {
      execute: {
        value: async (statement: InStatement) => {
          const answer = await database.reader.execute(statement);
          if (typeof statement === 'object' && statement.sql.includes('OR id IN')) meanwhile();
          return answer;
        },
      },
    });
    const book = new CredentialCache({
      database: Object.create(database, { reader: { value: reader } }),
      now: Date.now,
    });
    const principal = (await book.find(secret)) as Principal;
    const end = vi.fn();
    meanwhile = () => void book.watch(principal, 'read', end);
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    await book.invalidate();
    meanwhile = () => {};
    await book.invalidate();
    book.close();
    expect(end).toHaveBeenCalledOnce();
  });

  test('is refused as a bearer token when it is a cookie', async () => {
    const { cookie = '' } = await stage.browser();
    expect(await me(bearer(cookie.split('=')[1] ?? ''))).toBe(401);
    expect(await me({ cookie, 'sec-fetch-site': 'same-origin' })).toBe(200);
  });

  test.each([
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a page on another port', { 'sec-fetch-site': 'same-site' }],
    ['an address that was typed, for a write', { 'sec-fetch-site': 'none' }],
    ['another origin, on plain http', { origin: 'http://elsewhere.example' }],
    ['nobody', {}],
  ])('is refused in a cookie, %s', async (_, headers) => {
    const { cookie = '' } = await stage.browser();
    const response = await stage.send('/api/v1/inbox/marks', { method: 'POST', as: { cookie }, body: {}, headers });
    expect([response.status, await response.json()]).toMatchObject([403, { error: { code: 'cross_origin' } }]);
  });

  test("is refused in a cookie on a runner's route", async () => {
    const as = await stage.browser();
    expect(await stage.status('/agents/a1/commands', { as })).toBe(401);
  });
});

describe('an action', () => {
  /** An authorized action just before its write. */
  async function beginning(role: Role): Promise<{ id: string; write: () => Promise<unknown> }> {
    const { secret, id } = await stage.credential({ role });
    const principal = (await stage.parts.credentials.find(secret)) as Principal;
    const act = describeAction(new Request('http://127.0.0.1/act', { method: 'POST' }), principal, 'act', {}, null);
    const { database } = withAudit(stage.parts.database, act, stage.parts.now);
    return { id, write: () => database.writes.run((transaction) => transaction.execute('SELECT 1')) };
  }
  const entries = async () => {
    const { rows } = await stage.parts.database.reader.execute(`SELECT result FROM audit WHERE action = 'act'`);
    return rows.map(({ result }) => result);
  };

  test('commits together with its audit entry', async () => {
    await (await beginning('operator')).write();
    expect(await entries()).toEqual(['done']);
  });

  test('is refused if the credential was revoked meanwhile', async () => {
    const { id, write } = await beginning('operator');
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    await expect(write()).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await entries()).toEqual([]);
  });

  test('is refused if the role was revoked meanwhile', async () => {
    const { id, write } = await beginning('operator');
    await stage.parts.database.writes.run((transaction) =>
      transaction.execute({ sql: `UPDATE credentials SET role = 'viewer' WHERE id = ?`, args: [id] }),
    );
    await expect(write()).rejects.toMatchObject({ code: 'forbidden' });
    expect(await entries()).toEqual([]);
  });

  test('by the owner depends on no credential row', async () => {
    const act = describeAction(new Request('http://127.0.0.1/act', { method: 'POST' }), OWNER, 'act', {}, null);
    const { database } = withAudit(stage.parts.database, act, stage.parts.now);
    await database.writes.run((transaction) => transaction.execute('SELECT 1'));
    expect(await entries()).toEqual(['done']);
  });
});
