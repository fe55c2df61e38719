import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { FleetCounts } from '@interlude/protocol/inbox';
import type { AgentDetail } from '@interlude/protocol/read-models';
import { type Activity, MAX_MEASURED } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** The rows and metrics of the agent board, and its actions. */
export function describeFleetContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`the fleet, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `fleet-${serial}`;
        seq = 0;
        await run();
      });

    const write = (sessionId: string, ...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => record(++seq, { agentId: id, sessionId, event })),
        1,
        id,
      );
    const task = (phase: string, taskId: string): AgUiEvent => ({
      type: 'CUSTOM',
      name: `task:${phase}`,
      value: { task_id: taskId, description: 'npm test', kind: 'shell', status: phase },
    });
    const agent = async () => ((await (await target.get(`/api/v1/agents/${id}`)).json()) as AgentDetail).agent;
    const activity = async () => (await (await target.get('/api/v1/activity?minutes=5')).json()) as Activity;
    const retire = (retired: unknown, agentId = id, headers?: Record<string, string>) =>
      target.send(`/api/v1/agents/${agentId}/retirement`, {
        method: 'PUT',
        headers: headers ?? { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ retired }),
      });

    test('counts running tasks over all sessions of an agent', async () => {
      await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r' }, task('started', 't1'), task('started', 't2'));
      await write(`${id}/2`, { type: 'RUN_STARTED', runId: 'r' }, task('started', 't3'));
      expect((await agent()).runningTaskCount).toBe(3);
      await write(`${id}/1`, task('completed', 't1'));
      expect((await agent()).runningTaskCount).toBe(2);
    });

    test('counts each session in one state and group, and each agent in one state', async () => {
      const counts = async () => (await (await target.get('/api/v1/counts')).json()) as FleetCounts;
      const total = (of: Record<string, number>) => Object.values(of).reduce((sum, count) => sum + count, 0);
      let before: FleetCounts;
      let after: FleetCounts;
      let retired: FleetCounts;
      const hasLost = (was: Record<string, number>, is: Record<string, number>) =>
        Object.entries(was).some(([name, count]) => (is[name] ?? 0) < count);
      // Repeated if a session of another suite changed its group meanwhile: its agent fell silent.
      do {
        id += '+';
        seq = 0;
        before = await counts();
        await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r' }, { type: 'RUN_FINISHED', runId: 'r' });
        await write(`${id}/2`, { type: 'RUN_STARTED', runId: 'r' }, { type: 'RUN_ERROR', message: 'No credit' });
        after = await counts();
        expect((await retire(true)).status).toBe(200);
        retired = await counts();
      } while (hasLost(before.groups, retired.groups) || hasLost(before.agentStates, retired.agentStates));
      expect([after.groups.idle - before.groups.idle, after.groups.failed - before.groups.failed]).toEqual([1, 1]);
      expect(after.agentStates.failed - before.agentStates.failed).toBe(1);
      expect(retired.agentStates.failed).toBe(before.agentStates.failed);
      expect(retired.retiredStates.failed - before.retiredStates.failed).toBe(1);
      for (const { sessions, groups, agents, agentStates, retiredStates } of [before, after, retired]) {
        expect([total(groups), total(agentStates) + total(retiredStates)]).toEqual([total(sessions), agents]);
      }
    });

    test('retires an idle agent once, until its next record', async () => {
      await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r' });
      const busy = await retire(true);
      expect([busy.status, await errorOf(busy)]).toMatchObject([409, { reason: 'agent_at_work', sessions: 1 }]);
      await write(`${id}/1`, { type: 'RUN_FINISHED', runId: 'r' });
      const first = await (await retire(true)).json();
      expect(first).toMatchObject({ retiredAt: expect.any(Number) });
      expect(await (await retire(true)).json()).toEqual(first);
      expect((await agent()).retiredAt).toBe(first.retiredAt);
      expect(await (await retire(false)).json()).toMatchObject({ retiredAt: null });
      await retire(true);
      await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r2' });
      expect((await agent()).retiredAt).toBe(null);
    });

    test('refuses to retire an unknown agent, without a sign-in, or without the exact body', async () => {
      expect((await retire(true, 'nobody')).status).toBe(404);
      await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r' }, { type: 'RUN_FINISHED', runId: 'r' });
      expect((await retire(true, id, {})).status).toBe(401);
      expect((await retire('yes')).status).toBe(400);
    });

    test('counts events per minute, and measures tasks and replies by their own clocks', async () => {
      const before = await activity();
      expect(before.events).toHaveLength(5);
      expect(before.since % 60_000).toBe(0);
      const sum = ({ events }: Activity) => events.reduce((total, count) => total + count, 0);
      const ended = ({ tasks }: Activity) => tasks.reduce((total, { count }) => total + count, 0);
      await write(`${id}/1`, { type: 'RUN_STARTED', runId: 'r' }, task('started', 't1'), task('completed', 't1'), {
        type: 'RUN_FINISHED',
        runId: 'r',
      });
      const after = await activity();
      expect(sum(after)).toBeGreaterThanOrEqual(sum(before) + 4);
      expect(ended(after)).toBe(Math.min(MAX_MEASURED, ended(before) + 1));
      expect(after.tasks.map(({ fromMs, toMs }) => [fromMs, toMs]).at(-1)).toEqual([3_600_000, null]);
      expect((await target.get('/api/v1/activity?minutes=0')).status).toBe(400);
      expect((await target.get('/api/v1/activity?minutes=2000')).status).toBe(400);
      expect((await target.send('/api/v1/activity', {})).status).toBe(401);
    });

    test('reports a missing webhook, with the setting to use, to signed-in users', async () => {
      const status = await (await target.get('/api/v1/webhook')).json();
      expect(status).toMatchObject({ webhook: null, problem: null, waiting: 0, last: null });
      const log = await (await target.get('/api/v1/webhook/deliveries?limit=5')).json();
      expect(log).toMatchObject({ deliveries: [], next: null });
      const headers = { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' };
      const response = await target.send('/api/v1/webhook/test', { method: 'POST', headers, body: '{}' });
      expect([response.status, await errorOf(response)]).toMatchObject([409, { reason: 'no_webhook' }]);
      for (const [method, path] of [
        ['GET', ''],
        ['GET', '/deliveries'],
        ['POST', '/test'],
      ] as const) {
        expect((await target.send(`/api/v1/webhook${path}`, { method })).status).toBe(401);
      }
    });
  });
}
