import { afterEach, beforeEach, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(() => target.close());

const custom = (seq: number, name: string, value: unknown) => record(seq, { event: { type: 'CUSTOM', name, value } });

it('an ended session has no running task, even if its tasks started earlier requests', async () => {
  await ingest(target, [
    custom(1, 'task:started', { task_id: 'b1', description: 'Build' }),
    custom(2, 'task:started', { task_id: 'b2', description: 'Lint' }),
  ]);
  await ingest(target, [custom(3, 'task:completed', { task_id: 'b2', status: 'completed' })]);
  await ingest(target, [custom(4, 'session:ended', { reason: 'killed', exitCode: 137 })]);
  const tasks = await readTasks(unscoped(target.database), 's1');
  expect(tasks?.tasks.map(({ id, status }) => [id, status])).toEqual([
    ['b1', 'lost'],
    ['b2', 'completed'],
  ]);
  const detail = await readSession(unscoped(target.database), 's1');
  expect(detail?.session).toMatchObject({ state: 'exited', runningTaskCount: 0 });
});

it('an ended session has no running task, however many tasks there were and sessions end at once', async () => {
  const counts = { s1: 2_300, s2: 125, s3: 126, s4: 1, s5: 0 };
  let seq = 0;
  for (const [sessionId, count] of Object.entries(counts)) {
    const event = (at: number) => ({ type: 'CUSTOM', name: 'task:started', value: { task_id: `${sessionId}-${at}` } });
    const started = Array.from({ length: count }, (_, index) => record(++seq, { sessionId, event: event(index) }));
    if (count > 0) await ingest(target, started);
  }
  const ended = { type: 'CUSTOM', name: 'session:ended', value: { exitCode: 0 } };
  await ingest(
    target,
    Object.keys(counts).map((sessionId) => record(++seq, { sessionId, event: ended })),
  );
  const { rows } = await target.database.reader.execute(
    'SELECT session_id, status, count(*) AS count FROM tasks GROUP BY session_id, status ORDER BY session_id',
  );
  expect(rows.map(({ session_id, status, count }) => [session_id, status, count])).toEqual([
    ['s1', 'lost', 2_300],
    ['s2', 'lost', 125],
    ['s3', 'lost', 126],
    ['s4', 'lost', 1],
  ]);
  for (const sessionId of Object.keys(counts)) {
    expect((await readSession(unscoped(target.database), sessionId))?.session).toMatchObject({ runningTaskCount: 0 });
  }
});
