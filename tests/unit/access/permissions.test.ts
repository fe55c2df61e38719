import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AccessStage, bearer, type Headers, type RequestOptions } from '../../support/access-stage';
import { type BusyAgent, busyAgent } from '../../support/busy-agent';

let stage: AccessStage;
let own: BusyAgent;
let foreign: BusyAgent;
let viewer: Headers;
let operator: Headers;
let runner: Headers;
beforeAll(async () => {
  stage = await AccessStage.start();
  own = await busyAgent(stage, 'a');
  foreign = await busyAgent(stage, 'b');
  const scope = { kind: 'agents', ids: [own.agentId], prefixes: [] } as const;
  const made = async (role: 'viewer' | 'operator') => bearer((await stage.credential({ role, scope })).secret);
  viewer = await made('viewer');
  operator = await made('operator');
  const { id: _, ...headers } = await stage.token({ agent: own.agentId });
  runner = headers;
});
afterAll(() => stage.close());

const message: RequestOptions = { method: 'POST', body: { text: 'Hello', clientId: 'c' } };

describe('a role', () => {
  test('decides permissions: viewers read, operators act, runners speak', async () => {
    const asks = async (as: Headers) => [
      await stage.status(`/sessions/${own.sessionId}`, { as }),
      await stage.status(`/sessions/${own.sessionId}/messages`, { as, ...message }),
      await stage.status('/events', { as, method: 'POST', body: {} }),
      await stage.status('/audit', { as }),
    ];
    expect({ viewer: await asks(viewer), operator: await asks(operator), runner: await asks(runner) }).toEqual({
      viewer: [200, 403, 403, 403],
      operator: [200, 202, 403, 403],
      runner: [403, 403, 400, 403],
    });
  });
});

describe('a resource outside the scope', () => {
  test.each<[string, (of: BusyAgent) => string, RequestOptions]>([
    ['a session', ({ sessionId }) => `/sessions/${sessionId}`, {}],
    ['an agent', ({ agentId }) => `/agents/${agentId}`, {}],
    ['a log', ({ agentId }) => `/agents/${agentId}/logs`, {}],
    ['a log to download', ({ agentId }) => `/agents/${agentId}/logs/download`, {}],
    ['the stream of a session', ({ sessionId }) => `/stream?topic=session:${sessionId}`, {}],
    ['the stream of a log', ({ agentId }) => `/stream?topic=logs:${agentId}`, {}],
    ['a message', ({ sessionId }) => `/sessions/${sessionId}/messages`, message],
    ['an interrupt', ({ sessionId }) => `/sessions/${sessionId}/interrupt`, { method: 'POST', body: {} }],
    ['a run by AG-UI', ({ agentId }) => `/agui/${agentId}`, { method: 'POST', body: { threadId: 't', runId: 'r' } }],
    ['a log level', ({ agentId }) => `/agents/${agentId}/log-level`, { method: 'PUT', body: { level: 'info' } }],
  ])('is refused with the error of an unknown one: %s', async (_, path, sent) => {
    const none = Object.fromEntries(Object.entries(own).map(([name, id]) => [name, id.replace(/-a$/, '-x')]));
    const ask = async (of: BusyAgent) => {
      const response = await stage.send(`/api/v1${path(of)}`, { as: operator, ...sent });
      return [response.status, (await response.text()).replaceAll('-b', '-x')];
    };
    const refused = await ask(foreign);
    expect(refused).toEqual(await ask(none as unknown as BusyAgent));
    expect(refused[0]).toBe(404);
  });

  test('is not a session to assign a record to', async () => {
    const path = `/agents/${own.agentId}/parked/${own.position}/assign`;
    const assign = (sessionId: string) => stage.status(path, { as: operator, method: 'POST', body: { sessionId } });
    expect([await assign(foreign.sessionId), await assign('session-x')]).toEqual([404, 404]);
    expect(await assign(own.sessionId)).toBe(200);
    expect(await assign(own.sessionId)).toBe(409);
  });
});
