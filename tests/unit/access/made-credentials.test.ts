import type { NewToken } from '@interlude/protocol/access';
import { newEmbedSchema, newTokenSchema } from '@interlude/protocol/access';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { NewCredential } from '@/lib/server/access/credential-rows';
import { postEmbedToken } from '@/lib/server/access/embeds';
import { postToken } from '@/lib/server/access/manage-credentials';
import { AccessStage, bearer, type Headers, secretOf } from '@/tests/support/access-stage';
import { ownerContext } from '@/tests/support/call-route';

const CONSOLE = 'https://console.example';
const HOUR = 3_600_000;

let stage: AccessStage;
let until: number;

beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
});
afterAll(() => stage.close());
beforeEach(() => {
  until = stage.parts.now() + HOUR;
});

async function token(as: Headers, body: object = {}): Promise<{ as: Headers; id: string; expiresAt: number | null }> {
  const sent = { method: 'POST', as, body: { role: 'admin', ...body } };
  const { token: secret, credential } = await stage.ask<NewToken>('/tokens', sent);
  return { as: bearer(secret), id: credential.id, expiresAt: credential.expiresAt };
}

async function embed(as: Headers): Promise<Headers> {
  const sent = { method: 'POST', as, body: { fleet: true, parentOrigin: CONSOLE } };
  return bearer((await stage.ask<{ token: string }>('/embed-tokens', sent)).token);
}

async function signedIn(fields: Partial<NewCredential>): Promise<{ as: Headers; id: string }> {
  const { secret, id } = await stage.credential({ kind: 'session', role: 'admin', ...fields });
  return { as: { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' }, id };
}

async function signInBy(code: string): Promise<Headers> {
  const response = await stage.send(`/sign-in?token=${code}`, { as: {} });
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { cookie, 'sec-fetch-site': 'same-origin' };
}

const comesIn = async (as: Headers) => (await stage.status('/me', { as })) === 200;
const revoke = (id: string) => stage.ask(`/credentials/${id}`, { method: 'DELETE' });

test('a token from an expiring token expires no later', async () => {
  const parent = await token(stage.owner, { expiresAt: until });
  expect(parent.expiresAt).toBe(until);
  expect((await token(parent.as)).expiresAt).toBe(until);
  expect((await token(parent.as, { expiresAt: until + HOUR })).expiresAt).toBe(until);
  expect((await token(parent.as, { expiresAt: until - 1 })).expiresAt).toBe(until - 1);
  const child = await token(parent.as, { role: 'admin' });
  expect((await token(child.as, { role: 'runner', agent: 'a1' })).expiresAt).toBe(until);
});

test('revoking a token revokes everything it created, recursively', async () => {
  const [parent, other] = [await token(stage.owner), await token(stage.owner)];
  const child = await token(parent.as);
  const grandchildren = [
    (await token(child.as, { role: 'viewer' })).as,
    (await token(child.as, { role: 'runner', agent: 'a1' })).as,
    await embed(child.as),
    await embed((await token(child.as, { role: 'issuer' })).as),
  ];
  const all = [parent.as, child.as, ...grandchildren];
  expect(await Promise.all(all.map(comesIn))).toEqual(all.map(() => true));
  await revoke(parent.id);
  expect(await Promise.all(all.map(comesIn))).toEqual(all.map(() => false));
  expect(await comesIn(other.as)).toBe(true);
});

test('revoking a revoked token revokes what an earlier version left', async () => {
  const parent = await token(stage.owner);
  const child = await token(parent.as);
  await stage.parts.database.writes.run((transaction) =>
    transaction.execute({ sql: 'UPDATE credentials SET revoked_at = 1 WHERE id = ?', args: [parent.id] }),
  );
  expect(await comesIn(child.as)).toBe(true);
  await revoke(parent.id);
  expect(await comesIn(child.as)).toBe(false);
});

test('a token outlives the sign-in that created it; its embeds do not', async () => {
  const person = await stage.browser();
  const made = await token(person);
  const shown = await embed(person);
  const { credentialId } = await stage.ask<{ credentialId: string }>('/me', { as: person });
  expect(await Promise.all([made.as, shown].map(comesIn))).toEqual([true, true]);
  await stage.send('/sign-out', { method: 'POST', as: { ...person, origin: 'http://127.0.0.1:4319' } });
  expect(await comesIn(person)).toBe(false);
  expect(credentialId).toMatch(/^session-/);
  expect(await Promise.all([made.as, shown].map(comesIn))).toEqual([true, false]);
});

test('an expiring sign-in does not limit its tokens', async () => {
  const { as: person } = await signedIn({ expiresAt: until });
  expect((await token(person)).expiresAt).toBeNull();
  const sent = { method: 'POST', as: person, body: { fleet: true, parentOrigin: CONSOLE, ttlSeconds: 900 } };
  const { expiresAt } = await stage.ask<{ expiresAt: number }>('/embed-tokens', sent);
  expect(expiresAt).toBeLessThanOrEqual(until);
});

test('a revoked token creates nothing, even for a request received before', async () => {
  const parent = await token(stage.owner);
  const principal = await stage.parts.credentials.find(secretOf(parent.as));
  if (principal === null) throw new Error('the token is not known');
  await revoke(parent.id);
  const asked = { ...ownerContext, principal, ids: {}, request: new Request(CONSOLE) };
  const embeds = { ...stage.parts, embedOrigins: [CONSOLE] };
  const [body, shown] = [
    newTokenSchema.parse({ role: 'viewer' }),
    newEmbedSchema.parse({ fleet: true, parentOrigin: CONSOLE }),
  ];
  await expect(postToken({ ...asked, body }, stage.parts)).rejects.toMatchObject({ code: 'unauthenticated' });
  await expect(postEmbedToken({ ...asked, body: shown }, embeds)).rejects.toMatchObject({ code: 'unauthenticated' });
  const made = { sql: 'SELECT 1 FROM credentials WHERE parent_id = ?', args: [parent.id] };
  expect((await stage.parts.database.reader.execute(made)).rows).toEqual([]);
});

test('a sign-in from another sign-in’s link ends with that one, and no later', async () => {
  const first = await signedIn({ expiresAt: until });
  const code = await stage.code(first.as);
  const second = await signInBy(code);
  const third = await signInBy(await stage.code(second));
  const ends = (as: Headers) => stage.ask<{ expiresAt: number }>('/me', { as }).then(({ expiresAt }) => expiresAt);
  expect(await Promise.all([second, third].map(ends))).toEqual([until, until]);
  const unused = await stage.code(second);
  await revoke(first.id);
  expect(await Promise.all([first.as, second, third].map(comesIn))).toEqual([false, false, false]);
  expect((await stage.send(`/sign-in?token=${unused}`, { as: {} })).headers.get('set-cookie')).toBeNull();
});

test('a sign-in from the owner’s link ends after 30 days', async () => {
  const { expiresAt } = await stage.ask<{ expiresAt: number }>('/me', { as: await stage.browser() });
  expect(Math.abs(expiresAt - stage.parts.now() - 30 * 24 * HOUR)).toBeLessThan(HOUR);
});

test('ending other sign-ins spares the sender’s, even if one of them created it', async () => {
  const first = await stage.browser();
  const second = await signInBy(await stage.code(first));
  const shown = await embed(second);
  await stage.ask('/me/sign-ins', { method: 'DELETE', as: second });
  expect(await Promise.all([first, second, shown].map(comesIn))).toEqual([false, true, true]);
});

test('a sign-in from an earlier version expires like any other', async () => {
  const now = stage.parts.now();
  const at = (hours: number, memberId: string | null) =>
    signedIn({ expiresAt: null, now: now - hours * HOUR, memberId }).then(({ as }) => comesIn(as));
  expect(await at(30 * 24 - 1, null)).toBe(true);
  expect(await at(30 * 24 + 1, null)).toBe(false);
  expect(await at(11, 'ada')).toBe(true);
  expect(await at(13, 'ada')).toBe(false);
});
