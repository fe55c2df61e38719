import type { Role } from '@interlude/protocol/scope';
import type { InStatement } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { describeAction, withAudit } from '@/lib/server/access/audit';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { OWNER, type Principal } from '@/lib/server/access/principal';
import { AccessStage, bearer } from '../../support/access-stage';

/** By a wall clock that the test moves. */
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
  const isSignedIn = (answer: Response) => answer.headers.get('set-cookie')?.includes('interlude=ils_') ?? false;

  test('signs in once', async () => {
    const code = await stage.code();
    expect([isSignedIn(await open(code)), isSignedIn(await open(code))]).toEqual([true, false]);
  });

  test('signs in within five minutes', async () => {
    const [soon, late] = [await stage.code(), await stage.code()];
    moved = 4 * 60_000;
    expect(isSignedIn(await open(soon))).toBe(true);
    moved = 5 * 60_000 + 1_000;
    expect(isSignedIn(await open(late))).toBe(false);
  });

  test('asks first where a page of another site led to it, and is good afterwards', async () => {
    const code = await stage.code();
    const site = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    const asked = await open(code, site);
    expect([asked.status, isSignedIn(asked)]).toEqual([200, false]);
    expect(isSignedIn(await open(code))).toBe(true);
  });
});

describe('a credential', () => {
  test('lets nobody in once it is revoked', async () => {
    const { id, ...headers } = await stage.token({ role: 'viewer' });
    expect(await me(headers)).toBe(200);
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    expect(await me(headers)).toBe(401);
  });

  test('lets nobody in after its time', async () => {
    const headers = bearer((await stage.credential({ expiresAt: Date.now() + 60_000 })).secret);
    expect(await me(headers)).toBe(200);
    moved = 60_001;
    expect(await me(headers)).toBe(401);
  });

  test('lets nobody in that has not been used for long', async () => {
    const { secret } = await stage.credential({ kind: 'session', idleMs: 60_000 });
    const cookie = { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' };
    expect(await me(cookie)).toBe(200);
    moved = 60_001;
    expect(await me(cookie)).toBe(401);
  });

  test.each(['shared', 'perRequest'] as const)(
    'waits two seconds at most for its role, on a host that is %s',
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

  test('ends its streams when it is revoked', async () => {
    const { id, ...headers } = await stage.token({ role: 'viewer' });
    const reader = await stage.stream('/stream?topic=fleet', headers);
    await reader.frame('up-to-date');
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    expect((await reader.end()).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'unauthorized' } });
  });

  test('ends what begins by it while its revocation is read', async () => {
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

  test('that is a cookie opens nothing as a bearer token', async () => {
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
  ])('in a cookie opens nothing to %s', async (_, headers) => {
    const { cookie = '' } = await stage.browser();
    const answer = await stage.send('/api/v1/inbox/marks', { method: 'POST', as: { cookie }, body: {}, headers });
    expect([answer.status, await answer.json()]).toMatchObject([403, { error: { code: 'cross_origin' } }]);
  });

  test('in a cookie opens nothing that is for runners', async () => {
    const as = await stage.browser();
    expect(await stage.status('/agents/a1/commands', { as })).toBe(401);
  });
});

describe('what somebody does', () => {
  /** An act that was let in, and is about to be written. */
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

  test('is written with its entry in the audit', async () => {
    await (await beginning('operator')).write();
    expect(await entries()).toEqual(['done']);
  });

  test('is refused once the credential was revoked meanwhile', async () => {
    const { id, write } = await beginning('operator');
    await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
    await expect(write()).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await entries()).toEqual([]);
  });

  test('is refused once the role was taken away meanwhile', async () => {
    const { id, write } = await beginning('operator');
    await stage.parts.database.writes.run((transaction) =>
      transaction.execute({ sql: `UPDATE credentials SET role = 'viewer' WHERE id = ?`, args: [id] }),
    );
    await expect(write()).rejects.toMatchObject({ code: 'forbidden' });
    expect(await entries()).toEqual([]);
  });

  test('needs no credential that could end for whoever has the machine', async () => {
    const act = describeAction(new Request('http://127.0.0.1/act', { method: 'POST' }), OWNER, 'act', {}, null);
    const { database } = withAudit(stage.parts.database, act, stage.parts.now);
    await database.writes.run((transaction) => transaction.execute('SELECT 1'));
    expect(await entries()).toEqual(['done']);
  });
});
