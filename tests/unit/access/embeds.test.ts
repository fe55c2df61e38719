import type { NewEmbed } from '@interlude/protocol/access';
import type { Frame } from '@interlude/protocol/frames';
import type { SessionList } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { pathFor, validRequest } from '@/tests/support/busy-agent';
import { AccessStage, bearer, type Headers } from '../../support/access-stage';
import { type BusyAgent, busyAgent } from '../../support/busy-agent';

const CONSOLE = 'https://console.example.com';

let stage: AccessStage;
let [own, foreign]: BusyAgent[] = [];
/** May create embeds of agent `a`. */
let issuer: Headers;
beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  own = await busyAgent(stage, 'a');
  foreign = await busyAgent(stage, 'b');
  const scope = { kind: 'agents', ids: [own.agentId], prefixes: [] } as const;
  issuer = bearer((await stage.credential({ role: 'issuer', scope })).secret);
});
afterAll(() => stage.close());

const embed = (body: object, as: Headers = issuer) =>
  stage.send('/api/v1/embed-tokens', { method: 'POST', as, body: { parentOrigin: CONSOLE, ...body } });
const status = async (response: Promise<Response>) => (await response).status;

test('is created only for an allowed origin', async () => {
  const body = { sessionId: own?.sessionId };
  expect(await status(embed(body))).toBe(201);
  for (const parentOrigin of [
    'https://evil.example',
    'https://console.example.com:8443',
    'http://console.example.com',
  ]) {
    expect([parentOrigin, await status(embed({ ...body, parentOrigin }))]).toEqual([parentOrigin, 400]);
  }
});

test('stays within its creator’s scope', async () => {
  expect(await status(embed({ sessionId: foreign?.sessionId }))).toBe(404);
  expect(await status(embed({ agentId: foreign?.agentId }))).toBe(404);
  const { token } = (await (await embed({ fleet: true })).json()) as NewEmbed;
  const { sessions } = await stage.ask<SessionList>('/sessions', { as: bearer(token) });
  expect(new Set(sessions.map(({ agentId }) => agentId))).toEqual(new Set([own?.agentId]));
});

test('of the session list reads only the list', async () => {
  const { token } = (await (await embed({ fleet: true }, stage.owner)).json()) as NewEmbed;
  const as = bearer(token);
  const readable: string[] = [];
  for (const { method, pattern } of ROUTES.filter(({ access }) => access !== 'open')) {
    if (own === undefined || method === 'HEAD') continue;
    const { query, body } = validRequest(method, pattern, own);
    const response = await stage.send(`${pathFor(pattern, own)}${query}`, { method, as, body });
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    if (isStream) await response.body?.cancel();
    const text = isStream ? '' : await response.text();
    const isShown = response.ok && (isStream || /(?:agent|session|task|request|run|question)-[ab]\b/.test(text));
    if (isShown) readable.push(`${method} ${pattern}`);
  }
  expect(readable).toEqual(['GET /api/v1/stream', 'GET /api/v1/sessions']);
  for (const topic of [`session:${own?.sessionId}`, `logs:${own?.agentId}`]) {
    expect([topic, await stage.status(`/stream?topic=fleet&topic=${topic}`, { as })]).toEqual([topic, 404]);
  }
  const cookie = { cookie: `interlude=${token}`, 'sec-fetch-site': 'same-origin' };
  expect(await stage.status('/sessions', { as: cookie })).toBe(401);
});

test('of the session list gets a session’s changes without its content', async () => {
  const { token } = (await (await embed({ fleet: true })).json()) as NewEmbed;
  const stream = await stage.stream('/stream?topic=fleet&after=0', bearer(token));
  await stream.frame('up-to-date');
  const event = { type: 'CUSTOM', name: 'task:started', value: { task_id: 'live', description: 'Live' } };
  const record = { seq: 1, kind: 'event', agentId: own?.agentId, sessionId: own?.sessionId, occurredAt: 1, event };
  await stage.ask('/events', {
    method: 'POST',
    body: { producer: { id: 'agent-a/live', epoch: 1 }, records: [record] },
  });
  const isOwn = ({ event, data }: Frame) => event === 'session' && data.id === own?.sessionId;
  await stream.until((frames) => frames.filter(isOwn).length > 1);
  expect(new Set(stream.frames.map(({ event }) => event))).toEqual(new Set(['hello', 'session', 'up-to-date']));
});

test('ends with the credential that created it, at its expiry at the latest', async () => {
  const expiresAt = Date.now() + 60_000;
  const { id, ...maker } = await stage.token({ role: 'issuer', expiresAt });
  const made = (await (await embed({ sessionId: own?.sessionId, ttlSeconds: 900 }, maker)).json()) as NewEmbed;
  expect(made.expiresAt).toBe(expiresAt);
  expect(await stage.status('/me', { as: bearer(made.token) })).toBe(200);
  await stage.ask(`/credentials/${id}`, { method: 'DELETE' });
  expect(await stage.status('/me', { as: bearer(made.token) })).toBe(401);
});

test('answers no request, even if it may act', async () => {
  const { token } = (await (await embed({ sessionId: own?.sessionId, role: 'operator' })).json()) as NewEmbed;
  const as = bearer(token);
  const path = `/sessions/${own?.sessionId}/requests/${own?.requestId}`;
  const response = await stage.send(`/api/v1${path}`, { method: 'POST', as, body: { behavior: 'allow' } });
  expect([response.status, await response.json()]).toMatchObject([403, { error: { code: 'forbidden' } }]);
  const message = { text: 'Hello', clientId: 'from-embed' };
  const sent = await stage.send(`/api/v1/sessions/${own?.sessionId}/messages`, { method: 'POST', as, body: message });
  expect(sent.status).toBe(202);
});
