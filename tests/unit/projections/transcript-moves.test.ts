import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_TURN_ITEMS } from '@interlude/protocol/limits';
import { EMPTY_TRANSCRIPT, foldTranscript } from '@interlude/protocol/projections/transcript';
import { expect, it } from 'vitest';

/** A turn with a number of calls and a task end, and the turn that the end triggers. */
function followed(calls: number) {
  const events: AgUiEvent[] = [
    { type: 'RUN_STARTED', runId: 'r1' },
    ...Array.from({ length: calls }, (_, index) => ({
      type: 'TOOL_CALL_START',
      toolCallId: `c${index}`,
      toolCallName: 'Bash',
    })),
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 't' } },
    {
      type: 'RUN_STARTED',
      runId: 'r2',
      metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t'] } } },
    },
  ];
  const entries = events.map((event, index) => ({ position: String(index + 1), occurredAt: 1, receivedAt: 1, event }));
  return foldTranscript(EMPTY_TRANSCRIPT, entries);
}

it('an item of a complete turn moves live', () => {
  const { turns, incomplete } = followed(MAX_TURN_ITEMS - 1);
  expect([turns.map(({ items }) => items.length), incomplete]).toEqual([[MAX_TURN_ITEMS - 1, 1], false]);
});

it('an item of a truncated turn requires a reload to move', () => {
  expect(followed(MAX_TURN_ITEMS + 5).incomplete).toBe(true);
});

it('a report about another session’s task moves live to the turn it wakes', () => {
  const elsewhere = { task_id: 't1', run_id: 'run1', session_id: 's2', description: 'Build', status: 'completed' };
  const events: AgUiEvent[] = [
    { type: 'CUSTOM', name: 'task:started', value: { task_id: 't2' } },
    { type: 'CUSTOM', name: 'interlude:task-elsewhere', value: elsewhere },
    { type: 'RUN_STARTED', runId: 'r1', parentRunId: 'r0' },
  ];
  const entries = events.map((event, index) => ({ position: String(index + 1), occurredAt: 1, receivedAt: 1, event }));
  const { turns } = foldTranscript(EMPTY_TRANSCRIPT, entries);
  expect(turns.map(({ id, items }) => [id, items.map(({ kind }) => kind)])).toEqual([
    ['none:1', ['task']],
    ['r1', ['notice']],
  ]);
});
