import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { TaskOwners } from '@/lib/server/ingest/task-router';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

describe('the owner of a task', () => {
  const owners = new TaskOwners();
  const starts = (sessionId: string, taskId: string, runId: string | null = null) =>
    owners.started({ agentId: 'a1', sessionId, taskId, runId });
  starts('s1', 'alone');
  starts('s1', 'shared');
  starts('s2', 'shared');
  starts('s1', 'runs', 'run-1');
  starts('s2', 'runs', 'run-2');
  const of = (sessionId: string, id: string, runId: string | null = null, agentId = 'a1') =>
    owners.of(agentId, sessionId, { id, runId });

  test('is the session that started it, even if another one reports it', () => {
    expect(of('s1', 'alone')).toEqual({ kind: 'own' });
    expect(of('s2', 'alone')).toEqual({ kind: 'other', sessionId: 's1', byRun: false });
  });

  test('is the reporting session when several started it', () => {
    expect(of('s2', 'shared')).toEqual({ kind: 'own' });
  });

  test('is unknown when several started it and another session reports it', () => {
    expect(of('s3', 'shared')).toEqual({ kind: 'ambiguous', sessionIds: ['s1', 's2'] });
  });

  test('is the session that started the named run', () => {
    expect(of('s3', 'runs', 'run-2')).toEqual({ kind: 'other', sessionId: 's2', byRun: true });
    expect(of('s1', 'runs', 'run-2')).toEqual({ kind: 'other', sessionId: 's2', byRun: true });
    expect(of('s3', 'runs', 'run-9')).toEqual({ kind: 'ambiguous', sessionIds: ['s1', 's2'] });
  });

  test('is unknown when no session of the agent started it', () => {
    expect(of('s1', 'never')).toEqual({ kind: 'unknown' });
    expect(of('s1', 'alone', null, 'a2')).toEqual({ kind: 'unknown' });
  });
});

describe('records about tasks', () => {
  let target: InProcessTarget;
  beforeEach(async () => {
    target = await inProcessTarget();
  });
  afterEach(() => target.close());

  const task = (seq: number, sessionId: string, name: string, value: object, metadata = {}) =>
    record(seq, { sessionId, event: { type: 'CUSTOM', name, value, metadata } });
  const tasks = async () => {
    const sql = `SELECT ${TASK_ROW.columns()} FROM tasks ORDER BY position`;
    return (await target.database.reader.execute(sql)).rows.map(taskFromRow);
  };

  test('are parked when the owner is unknown, and change no session', async () => {
    const response = await ingest(target, [
      ...['s1', 's2'].map((sessionId, index) => task(index + 1, sessionId, 'task:started', { task_id: 't' })),
      record(3, { sessionId: 's3', event: { type: 'CUSTOM', name: 'marker', value: 3 } }),
      task(4, 's3', 'task:completed', { task_id: 't', status: 'completed' }),
      task(5, 's3', 'task:completed', { task_id: 'never', status: 'completed' }),
    ]);
    expect(response.rejected.map(({ seq, code }) => [seq, code])).toEqual([
      [4, 'task_of_several_sessions'],
      [5, 'task_of_no_session'],
    ]);
    expect((await tasks()).map(({ sessionId, status }) => [sessionId, status])).toEqual([
      ['s1', 'running'],
      ['s2', 'running'],
    ]);
  });

  test('in another session go to the session that started it', async () => {
    await ingest(target, [
      task(1, 's1', 'task:started', { task_id: 't' }),
      task(2, 's2', 'task:completed', { task_id: 't', status: 'failed' }),
    ]);
    expect(await tasks()).toMatchObject([{ sessionId: 's1', status: 'failed', reportedBy: 's2' }]);
  });

  test('cannot set the reporter or the assigner of a task', async () => {
    const claims = { interlude: { reportedBy: 's9', assignedBy: 'Ada' } };
    await ingest(target, [
      task(1, 's1', 'task:started', { task_id: 't' }, claims),
      task(2, 's1', 'task:completed', { task_id: 't', status: 'completed' }, claims),
    ]);
    expect(await tasks()).toMatchObject([{ status: 'completed', reportedBy: null, assignedBy: null }]);
  });
});
