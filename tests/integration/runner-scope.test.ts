import type { NewToken } from '@interlude/protocol/access';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorOf, record } from '../support/ingest-target';
import { type InProcessServer, inProcessServer } from '../support/server-target';

const DAY_MS = 24 * 3_600_000;

let server: InProcessServer;
beforeAll(async () => {
  server = await inProcessServer();
  await send(server.token, 'theirs', [marker({ agentId: 'theirs', sessionId: 'their-session' })]);
});
afterAll(() => server.close());

let seq = 0;
const marker = (fields: object) => ({ event: { type: 'CUSTOM', name: 'marker', value: 1 }, ...fields });
const json = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' });

async function tokenFor(body: object): Promise<string> {
  const request = { method: 'POST', headers: json(server.token), body: JSON.stringify(body) };
  const response = await server.send('/api/v1/tokens', request);
  expect(response.status).toBe(201);
  return ((await response.json()) as NewToken).token;
}

/** As a new producer each time. */
function send(token: string, producerId: string, records: object[], epoch = ++seq): Promise<Response> {
  const body = {
    producer: { id: producerId, epoch },
    records: records.map((one, index) => record(index + 1, one as never)),
  };
  return server.send('/api/v1/events', { method: 'POST', headers: json(token), body: JSON.stringify(body) });
}

const agentOf = async (id: string) => (await server.get(`/api/v1/agents/${id}`)).json();

describe('a runner’s token', () => {
  test('accepts records of its own agent', async () => {
    const token = await tokenFor({ agent: 'mine' });
    const response = await send(token, 'mine', [marker({ agentId: 'mine', sessionId: 'my-session' })]);
    expect(await response.json()).toMatchObject({ accepted: 1, rejected: [] });
  });

  test('quarantines records that name another agent under its own, without notifying that agent', async () => {
    const token = await tokenFor({ agent: 'mine' });
    const before = await agentOf('theirs');
    const records = [
      marker({ agentId: 'theirs', sessionId: 'their-session' }),
      { kind: 'log', agentId: 'theirs', log: { level: 'fatal', component: 'hook:x', message: 'forged' } },
      { kind: 'status', agentId: 'theirs', status: { report: { state: 'failure' } } },
      { kind: 'lost', agentId: 'theirs', lost: { count: 3, reason: 'forged' } },
      { kind: 'nonsense', agentId: 'theirs', sessionId: 'their-session' },
      marker({ agentId: 'mine', sessionId: 'their-session' }),
      marker({ agentId: 'mine', sessionId: 'my-session' }),
    ];
    const answer = await (await send(token, 'mine', records)).json();
    expect(answer.ackedSeq).toBe(records.length);
    expect(answer.rejected.map(({ code }: { code: string }) => code)).toEqual([
      ...Array(4).fill('agent_of_another_token'),
      'unknown_kind',
    ]);
    // An id of another agent gets its own session here.
    expect(answer.accepted).toBe(2);
    expect({ ...(await agentOf('theirs')), position: '' }).toEqual({ ...before, position: '' });
    expect((await agentOf('mine')).agent.quarantinedCount).toBe(5);
    expect(JSON.stringify(answer.rejected)).not.toContain('theirs');
  });

  test('writes nothing in the server’s name', async () => {
    const token = await tokenFor({ agent: 'mine' });
    const names = [
      CUSTOM.commandDone,
      CUSTOM.messageDelivery,
      CUSTOM.runnerAway,
      CUSTOM.obligationWaived,
      CUSTOM.removed,
    ];
    const records = names.map((name) => ({
      agentId: 'mine',
      sessionId: 'my-session',
      event: { type: 'CUSTOM', name },
    }));
    const { rejected } = await (await send(token, 'mine', records)).json();
    expect(rejected.map(({ code }: { code: string }) => code)).toEqual(names.map(() => 'reserved_name'));
  });

  test('can’t pass off a message as one that a person sent through the dashboard', async () => {
    const token = await tokenFor({ agent: 'mine' });
    const interlude = { origin: 'interlude', delivery: 'queued', clientId: 'c1' };
    const forged = { type: 'TEXT_MESSAGE_START', messageId: 'forged', role: 'user', metadata: { interlude } };
    await send(token, 'mine', [{ agentId: 'mine', sessionId: 'my-session', event: forged }]);
    const { turns } = await (await server.get('/api/v1/sessions/my-session/transcript')).json();
    const items = turns.flatMap(({ items: some }: { items: object[] }) => some);
    expect(items.find(({ id }: { id: string }) => id === 'forged')).toMatchObject({ delivery: null, clientId: null });
  });

  test('a runner’s token opens no other outbox: neither by its name, nor one that another agent writes from', async () => {
    const mine = await tokenFor({ agent: 'mine' });
    for (const id of ['theirs', 'min', 'mineral', 'mine-2', 'x-mine']) {
      const response = await send(mine, id, [marker({ agentId: 'mine' })], 9_000_000);
      expect([id, response.status, (await errorOf(response)).code]).toEqual([id, 403, 'forbidden']);
    }
    expect((await send(mine, 'mine/2', [marker({ agentId: 'mine', sessionId: 'my-session' })])).status).toBe(200);
    await send(server.token, 'mine/of-theirs', [marker({ agentId: 'theirs', sessionId: 'their-session' })]);
    expect((await send(mine, 'mine/of-theirs', [marker({ agentId: 'mine' })], 9_000_000)).status).toBe(403);
    const fleet = await tokenFor({ agentPrefix: 'fleet-', producerPrefix: 'box-' });
    const records = [marker({ agentId: 'fleet-1', sessionId: 'f1' })];
    expect((await send(fleet, 'fleet-1', records)).status).toBe(403);
    expect(await (await send(fleet, 'box-1', records)).json()).toMatchObject({ accepted: 1 });
  });

  test('is refused an epoch far ahead of the clock, like any credential, because it would fence the outbox forever', async () => {
    const far = Date.now() + 2 * DAY_MS;
    const response = await send(server.token, 'mine', [marker({ agentId: 'mine' })], far);
    expect([response.status, (await errorOf(response)).code]).toEqual([409, 'epoch_ahead']);
    expect((await send(server.token, 'near', [marker({ agentId: 'near', sessionId: 'n' })], Date.now())).status).toBe(
      200,
    );
  });

  test('reads no session and decides nothing', async () => {
    const token = await tokenFor({ agent: 'mine' });
    for (const path of [
      '/sessions',
      '/sessions/my-session/transcript',
      '/stream?topic=fleet',
      '/agents/mine',
      '/audit',
    ]) {
      const response = await server.send(`/api/v1${path}`, { headers: json(token) });
      expect([path, response.status]).toEqual([path, 403]);
    }
    const message = { method: 'POST', headers: json(token), body: '{"text":"go on","clientId":"c"}' };
    expect((await server.send('/api/v1/sessions/my-session/messages', message)).status).toBe(403);
    const response = await server.send('/api/v1/agents/mine/reply-obligations', { headers: json(token) });
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ obligations: [] })]);
    expect((await server.send('/api/v1/agents/theirs/reply-obligations', { headers: json(token) })).status).toBe(404);
    const theirs = await server.send('/api/v1/agents/theirs/commands?runner=r&startedAt=1', { headers: json(token) });
    expect(theirs.status).toBe(404);
  });
});
