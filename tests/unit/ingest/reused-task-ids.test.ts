import { afterEach, beforeEach, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { largestStatement } from '@/tests/support/database';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Agents that number their tasks from 1 use the same ids in every session and run. */

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(() => target.close());

const MANY = 300;
let seq = 0;
beforeEach(() => {
  seq = 0;
});
const task = (sessionId: string, name: string, value: object) =>
  record(++seq, { sessionId, event: { type: 'CUSTOM', name, value: { task_id: '1', ...value } } });
const many = <T>(make: (at: number) => T) => Array.from({ length: MANY }, (_, index) => make(index));

it('a report about a task reads a constant number of tasks, however many sessions share its id', async () => {
  await ingest(
    target,
    many((at) => task(`s${at}`, 'task:started', { run_id: `r${at}` })),
  );
  const largest = largestStatement(target.database);
  await ingest(target, [task('s7', 'task:completed', { run_id: 'r7' })]);
  await ingest(target, [task('s8', 'task:completed', { run_id: 'r299' })]);
  await ingest(target, [task('other', 'task:completed', {})]);
  expect(largest.rows).toBeLessThan(100);
  const standing = async (id: string) =>
    (await readTasks(unscoped(target.database), id))?.tasks.map(({ status }) => status);
  expect(await standing('s7')).toEqual(['completed']);
  expect(await standing('s8')).toEqual(['running']);
  expect(await standing('s299')).toEqual(['completed']);
  const { rows } = await target.database.reader.execute("SELECT code FROM quarantine WHERE parked = 'parked'");
  expect(rows.map(({ code }) => code)).toEqual(['task_of_several_sessions']);
});

it('a report about a task finds its run, however many runs of the session share its id', async () => {
  await ingest(
    target,
    many((at) => [
      task('s1', 'task:started', { run_id: `r${at}` }),
      task('s1', 'task:completed', { run_id: `r${at}` }),
    ]).flat(),
  );
  await ingest(target, [task('s1', 'task:started', { run_id: 'last' })]);
  const largest = largestStatement(target.database);
  await ingest(target, [task('s1', 'task:progress', { run_id: 'r3', summary: 'the fourth' })]);
  await ingest(target, [task('s1', 'task:progress', { summary: 'the newest' })]);
  expect(largest.rows).toBeLessThan(100);
  const tasks = (await readTasks(unscoped(target.database), 's1'))?.tasks ?? [];
  const reported = tasks.filter(({ summary }) => summary !== null).map(({ runId, summary }) => [runId, summary]);
  expect(reported).toEqual([
    ['r3', 'the fourth'],
    ['last', 'the newest'],
  ]);
});
