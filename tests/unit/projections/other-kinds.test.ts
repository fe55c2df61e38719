import type { AgUiEvent, FileEdit } from '@interlude/protocol/ag-ui';
import { MAX_TURN_TEXT } from '@interlude/protocol/limits';
import { EMPTY_TRANSCRIPT, foldTaskItems, foldTranscript } from '@interlude/protocol/projections/transcript';
import type { RequestItem, ToolCallItem, Turn } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { custom, runEnds, runStarts, says, seen, taskEnds, taskStarts, told, turnsOf, userSays } from './session-story';

/** Events of other agent kinds: plans, edits, options, inferred ends and causes. */
const plan = (id: string, entries: unknown, more: Partial<AgUiEvent> = {}): AgUiEvent[] => [
  { type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType: 'plan', content: { entries }, ...more },
];
const step = (content: string, status = 'pending') => ({ content, status });

describe('a plan', () => {
  it('appears in the open turn at its first place in its latest version', () => {
    const log = told(
      runStarts('r1', { userMessageIds: [] }),
      plan('p', [step('Read')]),
      says('m1', 'I read'),
      plan('p', [step('Read', 'completed'), step('Write')]),
    );
    expect(turnsOf(log)).toEqual({ 'user r1 open': ['plan: Read (completed), Write (pending)', 'assistant: I read'] });
    expect(log.page().turns[0]?.items[0]).toMatchObject({ kind: 'plan', id: 'p', position: '5' });
  });

  it('appears again in the next turn that reports it', () => {
    const log = told(
      runStarts('r1', { userMessageIds: [] }),
      plan('p', [step('Read')]),
      runEnds('r1'),
      runStarts('r2', { userMessageIds: [] }),
      plan('p', [step('Read', 'completed')]),
    );
    expect(turnsOf(log)).toEqual({
      'user r1 finished': ['plan: Read (pending)'],
      'user r2 open': ['plan: Read (completed)'],
    });
  });

  it('of a subagent appears on the task’s card', () => {
    const log = told(taskStarts('t1'), runStarts('r1'), plan('p', [step('Look')], { subagentRunId: 't1' }));
    expect(turnsOf(log)['user r1 open']).toEqual([]);
    const entries = log.after('0');
    expect(foldTaskItems([], 't1', entries)).toMatchObject([{ kind: 'plan', entries: [step('Look')] }]);
  });

  it('hides other activities and malformed plans', () => {
    const log = told(
      runStarts('r1', { userMessageIds: [] }),
      plan('p', [step('a')], { activityType: 'search' }),
      plan('p', 'everything'),
      [{ type: 'ACTIVITY_SNAPSHOT', activityType: 'plan', content: { entries: [step('no id')] } }],
    );
    expect(turnsOf(log)).toEqual({ 'user r1 open': [] });
    expect(turnsOf(told(plan('p', 'everything')))).toEqual({});
    expect(turnsOf(told(plan('p', [step('a')])))).toEqual({ 'none none:1 finished': ['plan: a (pending)'] });
  });

  it('is the same live and reloaded', () => {
    const log = told(runStarts('r1'), plan('p', [step('a')]), says('m', 'x'), plan('p', [step('a', 'completed')]));
    expect(foldTranscript(EMPTY_TRANSCRIPT, log.after('0')).turns).toEqual(log.page().turns);
  });
});

describe('edits in a result', () => {
  const call = (edits: unknown): AgUiEvent[] => [
    { type: 'TOOL_CALL_START', toolCallId: 't', toolCallName: 'apply_patch' },
    { type: 'TOOL_CALL_END', toolCallId: 't' },
    {
      type: 'TOOL_CALL_RESULT',
      toolCallId: 't',
      content: 'Done',
      metadata: { interlude: { edits: edits as FileEdit[] } },
    },
  ];
  const itemOf = (...chapters: AgUiEvent[][]) => told(...chapters).page().turns[0]?.items[0] as ToolCallItem;

  it('belong to the call', () => {
    const edits = [{ path: 'a', before: '', after: 'x' }];
    expect(itemOf(call(edits))).toMatchObject({ result: 'Done', status: 'completed', edits });
    expect(itemOf(call('nothing'))).not.toHaveProperty('edits');
  });

  it('stay with their call when its id is reused', () => {
    const edits = [{ path: 'a', before: '', after: 'x' }];
    const { items } = told(runStarts('r1'), call(edits), call([])).page().turns[0] as Turn;
    expect(items).toMatchObject([{ edits }, { id: 't', result: 'Done' }]);
    expect(items[1]).not.toHaveProperty('edits');
  });

  it('count toward the size of a turn', () => {
    const edits = [{ path: 'a', before: '', after: 'x'.repeat(900_000) }];
    const calls = Array.from({ length: 6 }, (_, index) =>
      call(edits).map((event) => ({ ...event, toolCallId: `t${index}` })),
    );
    const [turn] = told(runStarts('r1', { userMessageIds: [] }), ...calls).page().turns;
    const items = (turn?.items ?? []) as ToolCallItem[];
    const shown = items.reduce((sum, { edits: [edit] = [] }) => sum + (edit?.after.length ?? 0), 0);
    expect(shown).toBeLessThanOrEqual(MAX_TURN_TEXT);
    expect(turn?.omitted).toBeGreaterThan(0);
  });
});

describe('a permission with options', () => {
  const options = [
    { id: 'once', label: 'Yes', kind: 'allow' },
    { id: 'no', label: 'No', kind: 'deny' },
  ];
  const opened = (more: object = {}) =>
    custom('request:opened', {
      request_id: 'q',
      kind: 'permission',
      tool_name: 'shell',
      input: 'ls',
      options,
      ...more,
    });
  const itemOf = (...chapters: AgUiEvent[][]) => told(...chapters).page().turns[0]?.items[0] as RequestItem;

  it('keeps valid options of permissions only', () => {
    expect(itemOf(opened()).options).toEqual(options);
    expect(itemOf(opened({ options: [{ id: 'x' }] }))).not.toHaveProperty('options');
    expect(itemOf(opened({ kind: 'question' }))).not.toHaveProperty('options');
  });

  it('shows the chosen option, pending and done', () => {
    const answered = {
      command_id: 'c',
      type: 'permission.decision',
      request_id: 'q',
      behavior: 'allow',
      option_id: 'once',
    };
    const queued = itemOf(opened(), custom('command:queued', answered));
    expect(queued.answer).toEqual({
      commandId: 'c',
      behavior: 'allow',
      optionId: 'once',
      state: 'queued',
      reason: null,
    });
    const done = itemOf(opened(), custom('command:queued', answered), custom('command:done', answered));
    expect(done.answer).toMatchObject({ optionId: 'once', state: 'done' });
  });
});

describe('a turn with an inferred end', () => {
  it('is marked as inferred', () => {
    const log = told(runStarts('r1'), runEnds('r1', { inferred: true }), runStarts('r2'), runEnds('r2'));
    expect(log.page().turns).toMatchObject([{ id: 'r1', state: 'finished', inferred: true }, { id: 'r2' }]);
    expect(log.page().turns[1]).not.toHaveProperty('inferred');
    const odd = { inferred: 'yes' } as unknown as { inferred: true };
    expect(told(runStarts('r1'), runEnds('r1', odd)).page().turns[0]).not.toHaveProperty('inferred');
  });
});

describe('a turn started by Interlude', () => {
  it('keeps its cause and claims the task’s end', () => {
    const trigger = { kind: 'task' as const, taskIds: ['t1'], wokenBy: 'interlude' as const };
    const log = told(
      runStarts('r1', { userMessageIds: [] }),
      taskStarts('t1'),
      runEnds('r1'),
      taskEnds('t1', 'completed'),
      runStarts('r2', { turn: 'between-run', trigger }),
      runEnds('r2', { trigger }),
    );
    const [, turn] = log.page().turns;
    expect([turn?.trigger, seen(turn)]).toEqual([trigger, ['task t1 completed']]);
    expect([...log.tasks.values()][0]?.answeredInTurnId).toBe('r2');
    const odd = { ...trigger, wokenBy: 'somebody' } as unknown as typeof trigger;
    const other = told(userSays('u', 'x'), runStarts('r1', { turn: 'between-run', trigger: odd }));
    expect(other.page().turns.at(-1)?.trigger).toEqual({ kind: 'task', taskIds: ['t1'] });
  });
});

describe('a wake command', () => {
  const lineOf = (state: string, value: Record<string, unknown>) =>
    told(custom(`command:${state}`, { command_id: 'c', ...value })).page().turns[0]?.items[0];
  it.each([
    [
      'queued',
      { type: 'task.wake', task_id: 't', description: 'npm test' },
      'The agent was asked to wake for a task: npm test.',
    ],
    ['done', { type: 'task.wake', task_id: 't' }, 'The agent was woken for a task: t.'],
    [
      'failed',
      { type: 'task.wake', task_id: 't', reason: 'busy' },
      'The agent could not be woken for a task: t (busy).',
    ],
    ['done', { type: 'wake-rule.set', when: 'command-ended' }, 'The agent now wakes when a background command ends.'],
    ['done', { type: 'wake-rule.set', when: 'never' }, 'The agent no longer wakes when a background command ends.'],
  ])('is shown as a line when %s: %o', (state, value, text) => {
    expect(lineOf(state, value)).toMatchObject({ kind: 'notice', text });
  });
});
