import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetainedServer } from '../../support/retained-server';
import { taskStarted } from '../../support/turn-events';

let server: RetainedServer;
beforeEach(async () => {
  server = await RetainedServer.start();
  await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }]);
});
afterEach(async () => {
  await expectTrueCounts();
  expect(await server.faults()).toEqual([]);
  await server.close();
});

const later = (days: number) => server.later(days);
const spoils = (sessionId?: string, fields: object = {}) => server.send([{ kind: 'unheard of', sessionId, ...fields }]);
/** Reports on a task that no session started, or that several may have started. */
const parks = (taskId: string) =>
  server.write([{ type: 'CUSTOM', name: 'task:progress', value: { task_id: taskId, summary: 'on' } }], 's3');
const kept = () => server.rows('SELECT position, session_id, parked FROM quarantine ORDER BY position');
const sessionOf = async (id: string) => (await server.ask('GET', `/sessions/${id}`)).answer.session;
const agent = async () => (await server.ask('GET', '/agents/a1')).answer.agent;

/** Counted row by row. */
async function expectTrueCounts(): Promise<void> {
  const unsettled = `SELECT count(*) FROM quarantine WHERE ifnull(parked, 'parked') = 'parked'`;
  for (const row of await server.rows(`SELECT id, body->>'$.quarantinedCount' AS told, (${unsettled}
      AND session_id = sessions.id AND agent_id = sessions.agent_id) AS counted FROM sessions`)) {
    expect([row.id, row.told]).toEqual([row.id, row.counted]);
    const { answer } = await server.ask('GET', `/sessions/${row.id}/delivery`);
    expect([row.id, answer.quarantinedCount]).toEqual([row.id, row.counted]);
  }
  for (const row of await server.rows(`SELECT id, body->>'$.quarantinedCount' AS told,
      body->>'$.parkedCount' AS parked, (${unsettled} AND agent_id = agents.id) AS counted,
      (SELECT count(*) FROM quarantine WHERE parked = 'parked' AND agent_id = agents.id) AS waiting FROM agents`)) {
    expect([row.id, row.told, row.parked]).toEqual([row.id, row.counted, row.waiting]);
  }
}

describe('quarantined records', () => {
  test('that need no decision are removed and uncounted, which is published', async () => {
    await spoils('s1');
    await spoils('s1');
    await spoils();
    await later(6);
    await spoils('s1');
    await later(5);
    expect([(await sessionOf('s1')).quarantinedCount, (await agent()).quarantinedCount]).toEqual([3, 4]);
    const before = await server.rows(
      'SELECT updated_position FROM sessions UNION ALL SELECT updated_position FROM agents',
    );
    await server.retain();
    expect(await kept()).toHaveLength(1);
    expect([(await sessionOf('s1')).quarantinedCount, (await agent()).quarantinedCount]).toEqual([1, 1]);
    const after = await server.rows(
      'SELECT updated_position FROM sessions UNION ALL SELECT updated_position FROM agents',
    );
    for (const [index, row] of after.entries()) {
      expect(Number(row.updated_position)).toBeGreaterThan(Number(before[index]?.updated_position));
    }
    await later(11);
    await server.retain();
    const inbox = await server.rows(`SELECT done_at FROM inbox WHERE kind = 'delivery-gap'`);
    expect(inbox).toEqual([{ done_at: server.now }]);
    // and the next one reopens the item
    await spoils('s1');
    expect(await server.rows(`SELECT done_at FROM inbox WHERE kind = 'delivery-gap'`)).toEqual([{ done_at: null }]);
  });

  test('that can be settled stay, and are removed once settled', async () => {
    await server.write([taskStarted('t1', 'A job')], 's2', 'a1');
    await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }], 's3');
    await parks('nobody’s');
    await parks('nobody’s either');
    const positions = (await kept()).map(({ position }) => position);
    expect(positions).toHaveLength(2);
    await later(11);
    await server.retain();
    expect(await kept()).toHaveLength(2);
    expect(await agent()).toMatchObject({ quarantinedCount: 2, parkedCount: 2 });
    const path = `/agents/a1/parked/${positions[0]}/discard`;
    expect((await server.ask('POST', path, { clientId: 'd1' })).status).toBe(200);
    await later(0.9);
    await server.retain();
    expect(await kept()).toHaveLength(2);
    await later(10);
    await server.retain();
    expect((await kept()).map(({ position }) => position)).toEqual([positions[1]]);
    // a decision about a removed record has no effect
    expect((await server.ask('POST', path, { clientId: 'd1' })).status).toBe(404);
    expect(await agent()).toMatchObject({ quarantinedCount: 1, parkedCount: 1 });
  });

  test('from before the start of their session are not missing when it starts', async () => {
    await spoils('late');
    await spoils('late');
    await later(6);
    await spoils('late');
    await later(5);
    await server.retain();
    await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }], 'late');
    expect((await sessionOf('late')).quarantinedCount).toBe(1);
    await later(11);
    await server.retain();
    expect((await sessionOf('late')).quarantinedCount).toBe(0);
  });

  test('that name another agent’s session or an unknown one are counted where they were', async () => {
    await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }], 'other', 'a2');
    await server.send([
      { kind: 'event', agentId: 'a1', sessionId: 'other', event: { type: 'CUSTOM', name: 'x' } },
      { kind: 'event', agentId: 7, sessionId: 'nowhere', event: { type: 'X' } },
      { kind: 'event', agentId: '', event: { type: 'X' } },
    ]);
    await later(11);
    await expectTrueCounts();
    await server.retain();
    expect(await kept()).toEqual([]);
  });

  test('are removed in slices across 70 sessions', async () => {
    const sessions = Array.from({ length: 70 }, (_, index) => `n${index}`);
    const event = { type: 'CUSTOM', name: 'session:started', value: {} };
    await server.send(sessions.map((sessionId) => ({ kind: 'event', sessionId, event })));
    await server.send(sessions.map((sessionId) => ({ kind: 'unheard of', sessionId })));
    await later(11);
    await server.retain();
    expect(await kept()).toEqual([]);
    expect((await agent()).quarantinedCount).toBe(0);
  });

  test('are removed few at a time when they are large', async () => {
    for (const at of [1, 2, 3]) await spoils('s1', { text: `${at}`.repeat(4 * 1024 * 1024) });
    await later(11);
    await server.retain();
    expect(await kept()).toEqual([]);
  });
});
