import { afterEach, beforeEach, expect, it } from 'vitest';
import { readSession } from '@/lib/queries/read-sessions';
import { readTasks } from '@/lib/queries/read-tasks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(() => target.close());

const custom = (seq: number, name: string, value: unknown) => record(seq, { event: { type: 'CUSTOM', name, value } });

it('a session whose agent ended has no task that still runs, though the tasks started requests earlier', async () => {
  await ingest(target, [
    custom(1, 'task:started', { task_id: 'b1', description: 'Build' }),
    custom(2, 'task:started', { task_id: 'b2', description: 'Lint' }),
  ]);
  await ingest(target, [custom(3, 'task:completed', { task_id: 'b2', status: 'completed' })]);
  await ingest(target, [custom(4, 'session:ended', { reason: 'killed', exitCode: 137 })]);
  const tasks = await readTasks(target.database, 's1');
  expect(tasks?.tasks.map(({ id, status }) => [id, status])).toEqual([
    ['b1', 'lost'],
    ['b2', 'completed'],
  ]);
  const detail = await readSession(target.database, 's1');
  expect(detail?.session).toMatchObject({ state: 'failed', runningTaskCount: 0 });
});
