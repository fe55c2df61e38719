import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { describe, expect, it } from 'vitest';

describe('readInterlude', () => {
  const said = (interlude: object) => readInterlude({ type: 'RUN_STARTED', metadata: { interlude } } as AgUiEvent);

  it('keeps runs and owners aligned with tasks when malformed tasks are dropped', () => {
    const trigger = {
      kind: 'task',
      taskIds: ['', 't1', 7, '..', 't2'],
      taskRunIds: ['x', 'r1', 'x', 'x', ''],
      ofSessionIds: [null, null, null, null, 's2'],
    };
    expect(said({ trigger }).trigger).toEqual({
      kind: 'task',
      taskIds: ['t1', 't2'],
      taskRunIds: ['r1', null],
      ofSessionIds: [null, 's2'],
    });
  });

  it('keeps a timer’s reason and time if well-formed', () => {
    const timer = { kind: 'timer', taskIds: [] };
    expect(said({ trigger: { ...timer, reason: 'the build', setAt: 5 } }).trigger).toEqual({
      ...timer,
      ...{ reason: 'the build', setAt: 5 },
    });
    for (const setAt of [-1, Number.NaN, 1e300, '5', null])
      expect(said({ trigger: { ...timer, reason: 7, setAt } }).trigger).toEqual(timer);
    expect(said({ trigger: { kind: 'task', taskIds: [], reason: 'the build', setAt: 5 } }).trigger).toEqual({
      kind: 'task',
      taskIds: [],
    });
  });

  it('drops invalid ids', () => {
    expect(said({ userMessageIds: ['m1', '', '.', 'x'.repeat(257)] })).toEqual({ userMessageIds: ['m1'] });
    expect(said({ taskRunId: '', from: { kind: 'agent', id: '' } })).toEqual({});
  });
});
