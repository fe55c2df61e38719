import type { QuarantinedRecord } from '@interlude/protocol/read-models';
import { expect, test } from 'vitest';
import { groupParked } from '@/components/agents/parked-list';

function parked(position: string, sessionId: string, taskId: string, event: unknown, taskRunId: string | null = null) {
  const settled = { settledAt: null, settledBy: null, reason: null, assignedSessionId: null };
  return {
    ...{ position, producerId: 'p', epoch: 1, seq: 1, agentId: 'a', sessionId, code: 'task_of_no_session' },
    ...{ message: '', excerpt: null, size: 9, receivedAt: 1, record: { event } },
    parked: { state: 'parked', taskId, taskRunId, ...settled },
  } satisfies QuarantinedRecord;
}

test('groups a session’s records of a task run under the last summary', () => {
  const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
  const groups = groupParked([
    parked('1', 'b', 't1', custom('task:progress', { summary: 'Half way' })),
    parked('2', 'c', 't1', custom('task:completed', { status: 'failed' })),
    parked('3', 'b', 't1', custom('task:completed', { status: 'completed', summary: 'All green' })),
    parked('4', 'b', 't1', null, 'run-2'),
  ]);
  expect(groups.map(({ first, records, summary }) => [first.position, records.length, summary])).toEqual([
    ['1', 2, 'completed · All green'],
    ['2', 1, 'failed'],
    ['4', 1, ''],
  ]);
});
