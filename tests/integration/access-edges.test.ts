import type { Me, NewEmbed } from '@interlude/protocol/access';
import type { SessionList } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { AccessStage, type Headers } from '../support/access-stage';
import { type BusyAgent, busyAgent } from '../support/busy-agent';

const CONSOLE = 'https://console.example.com';

let stage: AccessStage;
let agent: BusyAgent;
beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  agent = await busyAgent(stage, 'a');
});
afterAll(() => stage.close());

/** Sends a request whose body arrives only after `letGo`. */
function heldRequest(path: string, body: object, as: Headers) {
  let letGo = () => {};
  const bytes = new ReadableStream<Uint8Array>({
    start(controller) {
      letGo = () => {
        controller.enqueue(new TextEncoder().encode(JSON.stringify(body)));
        controller.close();
      };
    },
  });
  const headers = { host: '127.0.0.1:4319', 'content-type': 'application/json', ...as };
  const init = { method: 'POST', headers, body: bytes, duplex: 'half' } as RequestInit;
  const response = stage.server.handle(new Request(`http://127.0.0.1:4319/api/v1${path}`, init));
  return { answer: response, letGo: () => letGo() };
}

const revoke = (id: string) => stage.ask(`/credentials/${id}`, { method: 'DELETE' });

describe('a request in progress when its credential ends', () => {
  test.each([
    ['a new token that would outlast it', '/tokens', { role: 'admin' }, { role: 'admin' }],
    ['a message', 'messages', { text: 'Still here', clientId: 'late' }, { role: 'operator' }],
  ] as const)('is refused: %s', async (_what, path, body, who) => {
    const { id, ...as } = await stage.token(who);
    const to = path === 'messages' ? `/sessions/${agent.sessionId}/messages` : path;
    const request = heldRequest(to, body, as);
    await revoke(id);
    request.letGo();
    expect((await request.answer).status).toBe(401);
  });

  test('is refused: records of a runner', async () => {
    const { id, ...as } = await stage.token({ agent: 'late' });
    const event = { type: 'CUSTOM', name: 'marker', value: 1 };
    const records = [{ seq: 1, kind: 'event', agentId: 'late', sessionId: 'late', occurredAt: 1, event }];
    const request = heldRequest('/events', { producer: { id: 'late', epoch: 1 }, records }, as);
    await revoke(id);
    request.letGo();
    expect((await request.answer).status).toBe(401);
    expect((await stage.send('/api/v1/sessions/late')).status).toBe(404);
  });
});

describe('a request composed by a named person', () => {
  const routes = ROUTES.filter(({ access, method }) => access !== 'open' && method !== 'HEAD');
  const composedBy = (id: string) => ({ headers: { 'x-interlude-principal': id } });

  test.each(routes)('is refused with another’s credential: $method $pattern', async ({ method, pattern, access }) => {
    const path = pattern.replace(/^\/api\/v1/, '').replaceAll(/:\w+/g, 'a');
    const sender = access === 'speak' ? stage.owner : await stage.browser();
    const body = method === 'GET' ? {} : { body: {} };
    const response = await stage.send(pattern === '/metrics' ? pattern : `/api/v1${path}`, {
      method,
      as: sender,
      ...body,
      ...composedBy('somebody-else'),
    });
    expect([response.status, (await response.json()).error.code]).toEqual([409, 'other_principal']);
  });

  test('is accepted with any of their sign-ins on this machine, and from programs that name nobody', async () => {
    const first = await stage.browser();
    const { id } = await stage.ask<Me>('/me', { as: first });
    expect(id).toBe('local');
    const message = (clientId: string) => ({ method: 'POST', body: { text: 'Go on', clientId } });
    const path = `/sessions/${agent.sessionId}/messages`;
    expect(await stage.status(path, { ...message('own'), as: await stage.browser(), ...composedBy(id) })).toBe(202);
    expect(await stage.status(path, message('program'))).toBe(202);
    expect(await stage.status(path, { ...message('program-own'), ...composedBy('owner') })).toBe(202);
  });

  test('is accepted with any sign-in of that team member, and with no other member’s', async () => {
    const { database, now } = stage.parts;
    await database.writes.run((transaction) =>
      transaction.execute({
        sql: `INSERT INTO members (id, issuer, subject, name, role, created_at, last_sign_in_at)
          VALUES ('ada', 'https://id.example', 'ada', 'Ada', 'operator', ?1, ?1), ('bob', 'https://id.example', 'bob', 'Bob', 'operator', ?1, ?1)`,
        args: [now()],
      }),
    );
    const signIn = async (memberId: string): Promise<Headers> => {
      const { secret } = await stage.credential({ kind: 'session', role: 'operator', memberId, idleMs: 3_600_000 });
      return { cookie: `interlude=${secret}`, 'sec-fetch-site': 'same-origin' };
    };
    const path = `/sessions/${agent.sessionId}/messages`;
    const sent = { method: 'POST', body: { text: 'Kept by Ada', clientId: 'kept' }, ...composedBy('ada') };
    expect(await stage.status(path, { ...sent, as: await signIn('bob') })).toBe(409);
    expect(JSON.stringify(await stage.ask(`/sessions/${agent.sessionId}/transcript`))).not.toContain('Kept by Ada');
    expect(await stage.status(path, { ...sent, as: await signIn('ada') })).toBe(202);
  });
});

describe('an embed', () => {
  const embed = (body: object, as: Headers = stage.owner) =>
    stage.send('/api/v1/embed-tokens', { method: 'POST', as, body: { parentOrigin: CONSOLE, ...body } });

  test('ends with the credential that created it', async () => {
    const expiresAt = Date.now() + 60_000;
    const { id: _, ...issuer } = await stage.token({ role: 'issuer', expiresAt });
    const embedded = (await (await embed({ fleet: true, ttlSeconds: 900 }, issuer)).json()) as NewEmbed;
    expect(embedded.expiresAt).toBe(expiresAt);
  });

  test('writes to one session at most', async () => {
    expect((await embed({ fleet: true, role: 'operator' })).status).toBe(400);
    expect((await embed({ agentId: agent.agentId, role: 'operator' })).status).toBe(400);
    expect((await embed({ sessionId: agent.sessionId, role: 'operator' })).status).toBe(201);
  });

  test('shows no more than its creator may see', async () => {
    const other = await busyAgent(stage, 'b');
    const { id: _, ...issuer } = await stage.token({ role: 'issuer', agent: agent.agentId });
    expect((await embed({ sessionId: agent.sessionId }, issuer)).status).toBe(201);
    const foreign = await embed({ sessionId: other.sessionId }, issuer);
    const missing = await embed({ sessionId: 'none' }, issuer);
    expect([foreign.status, missing.status]).toEqual([404, 404]);
    expect((await embed({ agentId: other.agentId }, issuer)).status).toBe(404);
    const fleet = (await (await embed({ fleet: true }, issuer)).json()) as NewEmbed;
    const seen = await stage.send('/api/v1/sessions', { as: { authorization: `Bearer ${fleet.token}` } });
    const { sessions } = (await seen.json()) as SessionList;
    expect(new Set(sessions.map(({ agentId }) => agentId))).toEqual(new Set([agent.agentId]));
  });

  test('approves nothing, for any holder of its token', async () => {
    const { token } = (await (await embed({ sessionId: agent.sessionId, role: 'operator' })).json()) as NewEmbed;
    const response = await stage.send(`/api/v1/sessions/${agent.sessionId}/requests/${agent.requestId}`, {
      method: 'POST',
      as: { authorization: `Bearer ${token}` },
      body: { behavior: 'allow' },
    });
    expect(response.status).toBe(403);
  });
});

describe('a stranger', () => {
  test('writes nothing with made-up codes', async () => {
    const before = await stage.ask<{ entries: number }>('/audit/check');
    for (let count = 0; count < 50; count += 1) {
      const code = `ilc_${String(count).padStart(43, 'x')}`;
      const response = await stage.send(`/sign-in?token=${code}`, { as: {} });
      expect(response.headers.get('location')).toBe('/signed-out?reason=old-link');
    }
    expect(await stage.ask('/audit/check')).toEqual(before);
  });

  test('learns the local name of the dashboard only with a valid code', async () => {
    const named = await AccessStage.start({ env: { INTERLUDE_LOCAL_NAME: 'interlude-k3v9' } });
    const browser = { 'sec-fetch-mode': 'navigate', 'user-agent': 'Mozilla/5.0 Chrome/156.0 Safari/537.36' };
    const visit = (token: string) => named.send(`/sign-in?token=${token}`, { as: {}, headers: browser });
    const response = await visit(`ilc_${'x'.repeat(43)}`);
    expect(JSON.stringify([...response.headers]) + (await response.text())).not.toContain('k3v9');
    const { code } = await named.ask<{ code: string }>('/sign-in-codes', { method: 'POST' });
    expect((await visit(code)).headers.get('location')).toContain(
      'http://interlude-k3v9.localhost:4319/sign-in?token=',
    );
    await named.close();
  });
});

test('a sign-in over TLS uses the __Host- cookie, and ignores any other', async () => {
  const { cookie = '', ...own } = await stage.browser();
  const tls = { ...own, 'x-forwarded-proto': 'https' };
  expect(await stage.status('/me', { as: { ...own, cookie } })).toBe(200);
  expect(await stage.status('/me', { as: { ...tls, cookie } })).toBe(401);
  expect(await stage.status('/me', { as: { ...tls, cookie: `__Host-${cookie}` } })).toBe(200);
});

test('temporary sign-in state is deleted after its minutes', async () => {
  const dayMs = 24 * 3_600_000;
  const [old, fresh] = [
    await stage.credential({ kind: 'embed', expiresAt: Date.now() - 31 * dayMs }),
    await stage.credential({ kind: 'embed', expiresAt: Date.now() - 29 * dayMs }),
  ];
  const token = await stage.credential({ kind: 'token', expiresAt: Date.now() - 31 * dayMs });
  await stage.code();
  const { rows } = await stage.parts.database.reader.execute('SELECT id FROM credentials');
  const ids = rows.map(({ id }) => id);
  expect([old, fresh, token].map(({ id }) => ids.includes(id))).toEqual([false, true, true]);
});
