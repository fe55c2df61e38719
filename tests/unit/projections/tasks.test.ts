import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { describe, expect, it } from 'vitest';
import { custom, runStarts, taskEnds, taskStarts, told, wokenBy } from './session-story';

const tasks = (...chapters: Parameters<typeof told>) => [...told(...chapters).tasks.values()];

describe('a task', () => {
  it('runs from its start and names its turn', () => {
    expect(tasks(runStarts('r1'), taskStarts('b1', { run_id: 'x', tool_use_id: 't1' }))).toMatchObject([
      {
        id: 'b1',
        runId: 'x',
        kind: 'shell',
        description: 'Poll b1',
        status: 'running',
        toolCallId: 't1',
        startedInTurnId: 'r1',
        endedAt: null,
      },
    ]);
  });

  it('keeps its description across progress reports', () => {
    const progress = custom('task:progress', {
      task_id: 'a1',
      description: 'Reading src/x',
      last_tool_name: 'Read',
      usage: { total_tokens: 10, tool_uses: 2, duration_ms: 30 },
    });
    expect(tasks(taskStarts('a1', { task_type: 'local_agent' }), progress)).toMatchObject([
      {
        kind: 'subagent',
        description: 'Poll a1',
        lastToolName: 'Read',
        usage: { totalTokens: 10, toolUses: 2, durationMs: 30 },
      },
    ]);
  });

  it('keeps its first end', () => {
    const [task] = tasks(
      taskStarts('b1'),
      custom('task:updated', { task_id: 'b1', status: 'killed' }),
      taskEnds('b1', 'completed'),
    );
    expect(task?.status).toBe('stopped');
  });

  it.each([
    [
      'keeps how that was',
      taskEnds('b1', 'failed', { exit_code: 3, summary: 'Poll failed', error: 'Boom' }),
      taskEnds('b1', 'completed', { exit_code: 0, summary: 'Poll succeeded', error: 'None' }),
      { status: 'failed', exitCode: 3, summary: 'Poll failed', error: 'Boom' },
    ],
    [
      'takes no exit code of another end, in a field or in words',
      taskEnds('b1', 'failed'),
      taskEnds('b1', 'completed', { summary: 'Command "poll" completed (exit code 0)' }),
      { status: 'failed', exitCode: null, summary: 'Command "poll" completed (exit code 0)' },
    ],
    [
      'is told more of by a later one that says otherwise',
      custom('task:updated', { task_id: 'b1', status: 'killed' }),
      taskEnds('b1', 'completed', { summary: 'It was stopped', output_file: '/o', exit_code: 0 }),
      { status: 'stopped', summary: 'It was stopped', outputFile: '/o', exitCode: null },
    ],
    [
      'is told more of by a later one that says the same',
      taskEnds('b1', 'failed', { summary: 'Failed' }),
      taskEnds('b1', 'failed', { exit_code: 3, summary: 'Failed with 3' }),
      { status: 'failed', exitCode: 3, summary: 'Failed with 3' },
    ],
  ])('that has ended %s', (_what, first, second, expected) => {
    expect(tasks(taskStarts('b1'), first, second)).toMatchObject([expected]);
  });

  it('presumed lost takes a later reported end', () => {
    const [task] = tasks(
      taskStarts('b1'),
      taskEnds('b1', 'lost'),
      taskEnds('b1', 'failed', { exit_code: 3, summary: 'failed' }),
    );
    expect(task).toMatchObject({ status: 'failed', exitCode: 3, summary: 'failed' });
  });

  it('presumed lost drops the reason once its end is reported', () => {
    const lost = [...taskStarts('b1'), ...taskEnds('b1', 'lost', { error: 'Its process has gone' })];
    expect(tasks(lost)).toMatchObject([{ status: 'lost', error: 'Its process has gone' }]);
    expect(tasks(lost, taskEnds('b1', 'completed'))).toMatchObject([{ status: 'completed', error: null }]);
  });

  describe('whose end another session reported', () => {
    const by = (reportedBy: string, events: AgUiEvent[]) =>
      events.map((event) => ({ ...event, metadata: { interlude: { reportedBy } } }));
    const killed = custom('task:updated', { task_id: 'b1', status: 'killed', error: 'Gone', summary: 'Was stopped' });
    const reported = [...taskStarts('b1'), ...by('s2', killed)];

    it.each([
      ['that its own session tells', taskEnds('b1', 'failed', { exit_code: 3 }), { status: 'failed', exitCode: 3 }],
      ['that its own session tells too', taskEnds('b1', 'stopped'), { status: 'stopped', summary: 'Was stopped' }],
      ['of which its own session says no more', taskEnds('b1', 'completed'), { summary: null, error: null }],
    ])('takes the end %s', (_, own, expected) => {
      expect(tasks(reported)).toMatchObject([{ status: 'stopped', error: 'Gone', reportedBy: 's2' }]);
      expect(tasks(reported, own)).toMatchObject([{ ...expected, reportedBy: null }]);
    });

    it('keeps that end against later guesses and reports', () => {
      const all = tasks(
        reported,
        by('s3', taskEnds('b1', 'completed')),
        taskEnds('b1', 'lost'),
        custom('session:ended', { reason: 'killed' }),
      );
      expect(all).toMatchObject([{ status: 'stopped', reportedBy: 's2' }]);
    });

    it.each([
      [[], 'completed', null],
      [by('s2', taskEnds('b1', 'stopped')), 'completed', null],
      [taskEnds('b1', 'lost'), 'completed', null],
      [[...taskEnds('b1', 'lost'), ...by('s2', taskEnds('b1', 'stopped'))], 'completed', null],
      [by('s2', taskEnds('b1', 'lost')), 'completed', null],
    ])('keeps the report of its own session: %#', (before, status, reportedBy) => {
      const own = taskEnds('b1', 'completed', { exit_code: 0, summary: 'Built' });
      const late = { status: 'failed', exit_code: 3, summary: 'Late', error: 'Late' };
      const all = tasks(taskStarts('b1'), before, own, by('s2', taskEnds('b1', 'failed', late)));
      expect(all).toMatchObject([{ status, exitCode: 0, summary: 'Built', error: null, reportedBy }]);
    });
  });

  it('is lost when its agent ends first', () => {
    const all = tasks(
      taskStarts('b1'),
      taskStarts('b2'),
      taskEnds('b2', 'completed'),
      custom('session:ended', { reason: 'exit' }),
    );
    expect(all).toMatchObject([
      { status: 'lost', endedAt: expect.any(Number), error: expect.stringContaining('The agent ended (exit)') },
      { status: 'completed', error: null },
    ]);
  });

  it('is another run when its id starts again', () => {
    const all = tasks(
      taskStarts('b1', { run_id: 'x' }),
      taskEnds('b1', 'completed', { run_id: 'x' }),
      taskStarts('b1', { run_id: 'y' }),
    );
    expect(all.map((task) => [task.runId, task.status])).toEqual([
      ['x', 'completed'],
      ['y', 'running'],
    ]);
  });

  it('is found by its id if an event names no run', () => {
    const all = tasks(taskStarts('b1', { run_id: 'x' }), taskEnds('b1', 'stopped'));
    expect(all.map((task) => [task.runId, task.status])).toEqual([['x', 'stopped']]);
  });

  it('exists after an end without a start', () => {
    expect(tasks(taskEnds('b9', 'completed', { output_file: '/x.output', usage: null }))).toMatchObject([
      { id: 'b9', description: 'b9', status: 'completed', outputFile: '/x.output', startedInTurnId: null },
    ]);
  });

  it('is answered by the turn that names its run', () => {
    const all = tasks(
      taskStarts('b1', { run_id: 'x' }),
      taskEnds('b1', 'completed', { run_id: 'x' }),
      taskStarts('b1', { run_id: 'y' }),
      runStarts('r2', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['b1'], taskRunIds: ['x'] } }),
    );
    expect(all.map((task) => task.answeredInTurnId)).toEqual(['r2', null]);
    expect(tasks(taskStarts('b1'), runStarts('r1', wokenBy('b1')))[0]?.answeredInTurnId).toBe('r1');
  });
});
