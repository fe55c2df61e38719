import type { MemberList, MemberSummary, OwnSignIns } from '@interlude/protocol/access';
import { EVERYTHING, type Role } from '@interlude/protocol/scope';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addCredential, type NewCredential } from '@/lib/server/access/credential-rows';
import { type InProcessServer, inProcessServer } from '../../support/server-target';

let server: InProcessServer;
beforeEach(async () => {
  server = await inProcessServer();
});
afterEach(() => server.close());

/** Signs a person in through the provider. @returns the cookie of that sign-in */
async function joins(id: string, role: Role): Promise<string> {
  await server.database.writes.run((transaction) =>
    transaction.execute({
      sql: `INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
        VALUES (?1, 'https://id.example', ?1, ?1, ?2, 1, 1)`,
      args: [id, role],
    }),
  );
  return signsIn({ name: id, role, memberId: id });
}

async function signsIn(fields: Partial<NewCredential>): Promise<string> {
  const made = await server.database.writes.run((transaction) =>
    addCredential(transaction, {
      ...{ kind: 'session', name: 'Local admin', role: 'admin', scope: EVERYTHING },
      ...{ now: Date.now(), expiresAt: null, idleMs: 3_600_000 },
      ...fields,
    }),
  );
  return `interlude=${made.secret}`;
}

/** Sends a request like a page. */
function ask(cookie: string, method: string, path: string, body?: object): Promise<Response> {
  const headers = { cookie, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
  return server.send(`/api/v1${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
}

async function change(cookie: string, id: string, body: object): Promise<MemberSummary> {
  const response = await ask(cookie, 'PUT', `/members/${id}`, body);
  expect(response.status).toBe(200);
  return ((await response.json()) as { member: MemberSummary }).member;
}

const whatMayDo = async (cookie: string) => {
  const response = await ask(cookie, 'GET', '/me');
  return response.status === 200 ? ((await response.json()) as { role: Role }).role : response.status;
};

describe('a member', () => {
  test('is listed with role, its source and sign-in count', async () => {
    const lena = await joins('lena', 'admin');
    await joins('tom', 'viewer');
    await change(lena, 'tom', { role: 'operator' });
    const { members, hasMore } = (await (await ask(lena, 'GET', '/members')).json()) as MemberList;
    expect(hasMore).toBe(false);
    expect(
      members.map(({ id, role, groupRole, givenRole, signInCount }) => [id, role, groupRole, givenRole, signInCount]),
    ).toEqual([
      ['lena', 'admin', 'admin', null, 1],
      ['tom', 'operator', 'viewer', 'operator', 1],
    ]);
  });

  test('gets an admin’s role at once, and the groups’ role when it is withdrawn', async () => {
    const [lena, tom] = [await joins('lena', 'admin'), await joins('tom', 'viewer')];
    expect(await whatMayDo(tom)).toBe('viewer');
    await change(lena, 'tom', { role: 'admin' });
    expect(await whatMayDo(tom)).toBe('admin');
    expect((await change(tom, 'tom', { role: null })).role).toBe('viewer');
    expect(await whatMayDo(tom)).toBe('viewer');
    expect((await ask(tom, 'GET', '/members')).status).toBe(403);
    expect((await ask(tom, 'PUT', '/members/tom', { role: 'admin' })).status).toBe(403);
  });

  test('is signed out everywhere when blocked, and unaffected by an old block once unblocked', async () => {
    const [lena, tom] = [await joins('lena', 'admin'), await joins('tom', 'viewer')];
    const phone = await signsIn({ name: 'tom', role: 'viewer', memberId: 'tom' });
    const blocked = await change(lena, 'tom', { blocked: true });
    expect([blocked.blockedAt !== null, blocked.signInCount]).toEqual([true, 0]);
    expect([await whatMayDo(tom), await whatMayDo(phone), await whatMayDo(lena)]).toEqual([401, 401, 'admin']);
    expect((await change(lena, 'tom', { blocked: false })).blockedAt).toBeNull();
    expect(await whatMayDo(await signsIn({ name: 'tom', role: 'viewer', memberId: 'tom' }))).toBe('viewer');
  });

  test('loses embeds that the role may no longer create', async () => {
    const [lena, tom] = [await joins('lena', 'admin'), await joins('tom', 'admin')];
    const { credentialId } = (await (await ask(tom, 'GET', '/me')).json()) as { credentialId: string };
    const embed = await server.database.writes.run((transaction) =>
      addCredential(transaction, {
        ...{ kind: 'embed', name: 'e', role: 'viewer', scope: EVERYTHING, parentId: credentialId },
        ...{ now: Date.now(), expiresAt: Date.now() + 60_000 },
      }),
    );
    const seen = () => server.send('/api/v1/me', { headers: { authorization: `Bearer ${embed.secret}` } });
    expect((await seen()).status).toBe(200);
    await change(lena, 'tom', { role: 'operator' });
    expect((await seen()).status).toBe(401);
  });

  test('can’t remove the last admin; the owner can', async () => {
    const lena = await joins('lena', 'admin');
    for (const body of [{ blocked: true }, { role: 'operator' }]) {
      const refused = await ask(lena, 'PUT', '/members/lena', body);
      expect(refused.status).toBe(409);
      expect((await refused.json()).error.message).toMatch(
        /^You are the only admin. Make another member an admin first/,
      );
    }
    expect(await whatMayDo(lena)).toBe('admin');
    await joins('tom', 'admin');
    expect((await change(lena, 'lena', { role: 'viewer' })).role).toBe('viewer');
    const local = await signsIn({});
    expect((await change(local, 'tom', { blocked: true })).blockedAt).not.toBeNull();
  });

  test('that is unknown is not found, and a non-member role is refused', async () => {
    const lena = await joins('lena', 'admin');
    expect((await ask(lena, 'PUT', '/members/nobody', { blocked: true })).status).toBe(404);
    expect((await ask(lena, 'PUT', '/members/lena', { role: 'owner' })).status).toBe(400);
  });

  test('has a role change recorded in the audit with its author', async () => {
    const lena = await joins('lena', 'admin');
    await joins('tom', 'viewer');
    await change(lena, 'tom', { role: 'operator' });
    const { entries } = await (await ask(lena, 'GET', '/audit')).json();
    expect(entries[0]).toMatchObject({
      actor: 'lena',
      action: 'change member',
      target: '/api/v1/members/tom',
      result: 'done',
    });
  });
});

describe('own sign-ins', () => {
  const ownOf = async (cookie: string) =>
    ((await (await ask(cookie, 'GET', '/me/sign-ins')).json()) as OwnSignIns).signIns;

  test('of a member span all browsers, and all but the current one can be ended', async () => {
    const tom = await joins('tom', 'viewer');
    const phone = await signsIn({ name: 'tom', role: 'viewer', memberId: 'tom' });
    const lena = await joins('lena', 'admin');
    expect((await ownOf(tom)).map(({ memberId }) => memberId)).toEqual(['tom', 'tom']);
    const left = (await (await ask(tom, 'DELETE', '/me/sign-ins')).json()) as OwnSignIns;
    expect(left.signIns).toHaveLength(1);
    expect([await whatMayDo(tom), await whatMayDo(phone), await whatMayDo(lena)]).toEqual(['viewer', 401, 'admin']);
  });

  test('on this machine are those of the same name, never a member’s', async () => {
    const [one, other] = [await signsIn({}), await signsIn({})];
    const member = await joins('Local admin', 'viewer');
    await ask(one, 'DELETE', '/me/sign-ins');
    expect([await whatMayDo(one), await whatMayDo(other), await whatMayDo(member)]).toEqual(['admin', 401, 'viewer']);
  });

  test('are empty for a program', async () => {
    const cookie = await signsIn({ name: 'robot' });
    const token = await server.database.writes.run((transaction) =>
      addCredential(transaction, {
        kind: 'token',
        name: 'robot',
        role: 'viewer',
        scope: EVERYTHING,
        now: 1,
        expiresAt: null,
      }),
    );
    for (const bearer of [token.secret, server.token]) {
      const headers = { authorization: `Bearer ${bearer}` };
      const response = await server.send('/api/v1/me/sign-ins', { method: 'DELETE', headers });
      expect([response.status, (await response.json()).error.code]).toEqual([403, 'forbidden']);
    }
    expect(await whatMayDo(cookie)).toBe('admin');
  });
});
