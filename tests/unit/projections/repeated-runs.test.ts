import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import { describe, expect, it } from 'vitest';
import type { MemoryLog } from '../../support/memory-log';
import { runEnds, runStarts, says, taskEnds, taskStarts, told, turnsOf, userSays, wokenBy } from './session-story';

/** A run reported by two readers of the same agent, or replayed by its server. */
const first = [
  userSays('u1', 'Go'),
  runStarts('r1', { turn: 'user', userMessageIds: ['u1'] }),
  taskStarts('t1'),
  [
    ...says('a1', 'On it'),
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: 'ok' },
  ],
  runEnds('r1'),
];
const second = [taskEnds('t1', 'completed'), runStarts('r2', wokenBy('t1')), says('a2', 'Done'), runEnds('r2')];
const whole = {
  'user r1 finished': ['user: Go', 'task t1 started', 'assistant: On it', 'Bash completed: ok'],
  'between-run r2 finished': ['task t1 completed', 'assistant: Done'],
};
const headersOf = (log: MemoryLog) => log.page().turns.map(({ items: _, ...header }) => header);
const taskIds = (log: MemoryLog) => [...log.tasks.values()].map(({ id, status }) => `${id} ${status}`);

describe('a repeated run', () => {
  it.each<[string, AgUiEvent[][]]>([
    ['from its own start', [...first.slice(1), ...second]],
    ['with its message', [...first, ...second]],
    ['but for its end', first.slice(1, 4)],
    ['by the end of its task alone', second.slice(0, 1)],
    ['twice', [...first, ...second, ...first, ...second]],
  ])('keeps the finished turn and its tasks: %s', (_how, again) => {
    const log = told(...first, ...second);
    const before = headersOf(log);
    const live = transcriptFromPage(log.page());
    const entries = again.slice(0, 1).flatMap((chapter) => log.append(chapter));
    for (const chapter of again.slice(1)) entries.push(...log.append(chapter));
    if (again.some(([event]) => event?.type === 'RUN_STARTED')) expect(turnsOf(log)).toEqual(whole);
    expect(headersOf(log).filter(({ kind }) => kind !== 'none')).toEqual(before);
    expect(taskIds(log)).toEqual(['t1 completed']);
    expect(foldTranscript(live, entries).turns).toEqual(log.page().turns);
  });

  it('leaves the open turn open', () => {
    const log = told(
      ...first,
      runStarts('r3', { turn: 'user', userMessageIds: [] }),
      ...first.slice(1, 2),
      runEnds('r1'),
    );
    expect(Object.keys(turnsOf(log))).toEqual(['user r1 finished', 'user r3 open']);
  });

  it('ends when another run starts', () => {
    const log = told(...first, ...first.slice(1, 2), userSays('u2', 'And?'), says('a3', 'Later'));
    expect(turnsOf(log)['user r1 finished']).toEqual(whole['user r1 finished']);
    expect(Object.values(turnsOf(log)).flat()).toContain('assistant: Later');
  });
});

describe('a run with the id of a finished one', () => {
  it.each<[string, AgUiEvent[][]]>([
    ['a new message', [userSays('u2', 'More'), runStarts('r1', { turn: 'user', userMessageIds: ['u2'] })]],
    ['any message that waits', [userSays('u2', 'More'), runStarts('r1')]],
    ['the end of a task', [taskEnds('t1', 'completed'), runStarts('r1', wokenBy('t1'))]],
    [
      'what it had asked',
      [[{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1', input: { messages: [], resume: [{}] } }]],
    ],
  ])('continues its turn if it answers %s', (_what, chapters) => {
    const log = told(...first, ...chapters);
    expect(log.page().turns.map(({ id, state }) => [id, state])).toEqual([['r1', 'open']]);
  });
});

it('a task that restarts is shown each time, a repeated end is not', () => {
  const cycle = [taskStarts('t1'), taskEnds('t1', 'completed')];
  const log = told(runStarts('r1'), ...cycle, taskEnds('t1', 'completed'), ...cycle, taskEnds('t1', 'failed'));
  expect(turnsOf(log)['user r1 open']).toEqual([
    'task t1 started',
    'task t1 completed',
    'task t1 started',
    'task t1 completed',
    'task t1 failed',
  ]);
  expect(log.tasks.size).toBe(2);
});
