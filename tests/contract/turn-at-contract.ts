import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { TurnAt } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Which turn and tasks ran at a time of the agent's clock. */
export function describeTurnAtContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`turns by time, ${name}`, () => {
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
        id = `turn-at-${serial}`;
        seq = 0;
        await run();
      });

    const send = (...events: [occurredAt: number, event: AgUiEvent][]) =>
      ingest(
        target,
        events.map(([occurredAt, event]) => record(++seq, { agentId: id, sessionId: id, occurredAt, event })),
        1,
        id,
      );
    const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: id, runId });
    const ends = (runId: string): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: id, runId });
    const task = (phase: 'started' | 'completed', taskId: string, runId: string | null = null): AgUiEvent => ({
      type: 'CUSTOM',
      name: `task:${phase}`,
      value: { task_id: taskId, run_id: runId, description: taskId },
    });
    const at = async (time: number): Promise<TurnAt> => {
      const response = await target.get(`/api/v1/sessions/${id}/turn-at?at=${time}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('cache-control')).toBe('no-store');
      return response.json();
    };
    const refusal = async (query: string, sessionId = id) => {
      const response = await target.get(`/api/v1/sessions/${sessionId}/turn-at${query}`);
      return { status: response.status, ...(await errorOf(response)) };
    };

    test('names the turn that spans the time, including both ends', async () => {
      await send([1_000, starts('r1')], [2_000, ends('r1')], [5_000, starts('r2')]);
      for (const time of [1_000, 1_500, 2_000]) expect(await at(time)).toMatchObject({ turnId: 'r1', running: true });
      for (const time of [5_000, 9_999_999]) expect(await at(time)).toMatchObject({ turnId: 'r2', running: true });
    });

    test('names the last turn before the time between turns, and none before the first', async () => {
      await send([1_000, starts('r1')], [2_000, ends('r1')], [5_000, starts('r2')], [6_000, ends('r2')]);
      expect(await at(3_000)).toMatchObject({ turnId: 'r1', running: false });
      expect(await at(7_000)).toMatchObject({ turnId: 'r2', running: false });
      expect(await at(999)).toMatchObject({ turnId: null, running: false, taskIds: [] });
    });

    test('uses the agent’s clock for records in any order and of any delay', async () => {
      await send([8_000, starts('late')], [9_000, ends('late')], [1_000, starts('early')], [2_000, ends('early')]);
      expect(await at(8_500)).toMatchObject({ turnId: 'late', running: true });
      expect(await at(1_500)).toMatchObject({ turnId: 'early', running: true });
      expect(await at(5_000)).toMatchObject({ turnId: 'early', running: false });
    });

    test('omits items outside any turn', async () => {
      const notice: AgUiEvent = { type: 'CUSTOM', name: 'interlude:notice', value: { text: 'compacted' } };
      await send([1_000, starts('r1')], [2_000, ends('r1')], [3_000, notice]);
      expect(await at(3_000)).toMatchObject({ turnId: 'r1', running: false });
    });

    test('names the tasks that ran then, also between turns, with each run separate', async () => {
      await send(
        [1_000, starts('r1')],
        [1_200, task('started', 'build', 'x')],
        [1_400, task('started', 'watch')],
        [2_000, ends('r1')],
        [3_000, task('completed', 'build', 'x')],
        [5_000, starts('r2')],
        [5_100, task('started', 'build', 'y')],
      );
      expect((await at(1_100)).taskIds).toEqual([]);
      expect(await at(2_500)).toMatchObject({ turnId: 'r1', running: false, taskIds: ['watch', 'build'] });
      expect((await at(3_000)).taskIds).toEqual(['watch', 'build']);
      expect((await at(4_000)).taskIds).toEqual(['watch']);
      expect((await at(6_000)).taskIds).toEqual(['build', 'watch']);
    });

    test('returns its position, and refuses invalid times', async () => {
      const { position } = await send([1_000, starts('r1')]);
      expect(Number((await at(1_000)).position)).toBeGreaterThanOrEqual(Number(position));
      for (const query of ['', '?at=', '?at=now', '?at=-1', '?at=1.5', '?at=1e3', '?at=1&turn=r1']) {
        expect(await refusal(query)).toMatchObject({ status: 400, code: 'invalid_argument' });
      }
      expect(await refusal('?at=1', `${id}-nowhere`)).toMatchObject({ status: 404, code: 'not_found' });
    });
  });
}
