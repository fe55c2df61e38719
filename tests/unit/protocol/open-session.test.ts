import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import {
  endsOf,
  NOTHING_OPEN,
  OpenSession,
  type OpenWork,
  workAfter,
} from '@interlude/protocol/lifecycle/open-session';
import { ClaudeAdapter } from '@interlude/runner/adapters/claude/claude-adapter';
import { feedRecordingLine } from '@interlude/runner/adapters/recordings';
import { describe, expect, test } from 'vitest';
import { recordingLines } from '@/tests/support/recordings';

const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
const started = (task_id: string, more: object = {}) => custom(CUSTOM.taskStarted, { task_id, ...more });
const completed = (task_id: string, more: object = {}) =>
  custom(CUSTOM.taskCompleted, { task_id, status: 'completed', ...more });
const begun = (runId: string) => ({ type: 'RUN_STARTED', threadId: 's', runId });
const finished = (runId: string) => ({ type: 'RUN_FINISHED', threadId: 's', runId });
const call = (toolCallId: string, subagentRunId?: string): AgUiEvent => ({
  ...{ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'Bash' },
  ...(subagentRunId === undefined ? {} : { subagentRunId }),
});
const asked = (request_id: string) => custom(CUSTOM.requestOpened, { request_id });
const resolved = (request_id: string, outcome: string) => custom(CUSTOM.requestResolved, { request_id, outcome });

const after = (...events: AgUiEvent[]) => {
  const session = new OpenSession();
  for (const event of events) session.take(event);
  const { turn, tasks, requests } = session.work;
  return {
    turn: turn?.runId ?? null,
    tasks: tasks.map(({ id, runId }) => (runId === null ? id : `${id}/${runId}`)),
    requests,
    calls: session.calls.map(({ id }) => id),
  };
};
const nothing = { turn: null, tasks: [], requests: [], calls: [] };

describe('OpenSession', () => {
  test.each<[string, AgUiEvent[], object]>([
    ['a turn is open until its own end', [begun('r1'), finished('r0')], { turn: 'r1' }],
    ['a turn that began anew has taken the place of the one before', [begun('r1'), begun('r2')], { turn: 'r2' }],
    ['an end names no turn', [begun('r1'), { type: 'RUN_ERROR', message: 'x' }], {}],
    [
      'a call is open beyond its end',
      [begun('r1'), call('c1'), { type: 'TOOL_CALL_END', toolCallId: 'c1' }],
      { turn: 'r1', calls: ['c1'] },
    ],
    [
      'until its result',
      [begun('r1'), call('c1'), { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: '' }],
      { turn: 'r1' },
    ],
    [
      'a turn’s end cuts off its calls, not a subagent’s',
      [begun('r1'), call('c1'), call('c2', 't1'), finished('r1')],
      { calls: ['c2'] },
    ],
    ['as does the next turn', [begun('r1'), call('c1'), begun('r2')], { turn: 'r2' }],
    [
      'a task’s end cuts off those of its subagent',
      [started('t1'), call('c1', 't1'), call('c2', 't2'), completed('t1')],
      { calls: ['c2'] },
    ],
    ['tasks outlive their turn', [begun('r1'), started('t1'), finished('r1')], { tasks: ['t1'] }],
    [
      'runs of one task are told apart',
      [started('t1', { run_id: 'a' }), started('t1', { run_id: 'b' }), completed('t1', { run_id: 'a' })],
      { tasks: ['t1/b'] },
    ],
    [
      'an end without a run ends all of them',
      [started('t1', { run_id: 'a' }), started('t1', { run_id: 'b' }), completed('t1')],
      {},
    ],
    ['progress begins no task', [custom(CUSTOM.taskProgress, { task_id: 't1' })], {}],
    ['nor does an update', [custom(CUSTOM.taskUpdated, { task_id: 't1', status: 'running' })], {}],
    ['a loss ends it', [started('t1'), completed('t1', { status: 'lost' })], {}],
    ['a request waits once', [asked('q1'), asked('q1')], { requests: ['q1'] }],
    ['until an answer', [asked('q1'), asked('q2'), resolved('q1', 'allowed')], { requests: ['q2'] }],
    ['or until the agent continues', [asked('q1'), resolved('q1', 'unknown')], {}],
    ['and may be asked again', [asked('q1'), resolved('q1', 'denied'), asked('q1')], { requests: ['q1'] }],
    [
      'the session’s end ends everything',
      [begun('r1'), call('c1', 't1'), started('t1'), asked('q1'), custom(CUSTOM.sessionEnded, {})],
      {},
    ],
    [
      'what names nothing changes nothing',
      [
        started(''),
        asked(''),
        { type: 'TOOL_CALL_START', toolCallId: 7 },
        { type: 'toString' },
        custom('constructor', {}),
      ],
      {},
    ],
  ])('%s', (_, events, expected) => {
    expect(after(...events)).toEqual({ ...nothing, ...expected });
  });

  test('appends or replaces the arguments of a call', () => {
    const session = new OpenSession();
    const args = (delta: string, metadata = {}) =>
      session.take({ type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta, metadata });
    session.take(call('c1'));
    args('{"a');
    args('":1}');
    expect(session.calls).toEqual([{ id: 'c1', name: 'Bash', args: '{"a":1}', by: null }]);
    args('{}', { interlude: { whole: true } });
    expect(session.calls[0]?.args).toBe('{}');
  });

  test('evicts the oldest call when full', () => {
    const session = new OpenSession();
    for (let index = 0; index < 200; index++) session.take(call(`c${index}`));
    expect(session.calls.length).toBe(128);
    expect(session.calls.at(-1)?.id).toBe('c199');
  });

  test('returns the same object until something changes', () => {
    const work = workAfter(NOTHING_OPEN, [{ event: begun('r1') }]);
    const texts = [
      { type: 'TEXT_MESSAGE_START', messageId: 'm' },
      call('c'),
      custom(CUSTOM.taskProgress, { task_id: 't' }),
    ];
    expect(
      workAfter(
        work,
        texts.map((event) => ({ event })),
      ),
    ).toBe(work);
  });

  test('skips text events in constant time', () => {
    const work: OpenWork = {
      ...NOTHING_OPEN,
      get tasks(): OpenWork['tasks'] {
        throw new Error('read');
      },
    };
    expect(workAfter(work, [{ event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x' } }])).toBe(work);
  });

  test.each(['3bg', 'agents', 'bash-bg', 'perm', 'race', 'midturn-text', 'stoptask'])(
    'of %s is nothing once everything has ended, and its ends close it at every moment before',
    (name) => {
      let count = 0;
      const adapter = new ClaudeAdapter({ sessionId: 's', newRunId: () => `run-${++count}` });
      let open: OpenWork = NOTHING_OPEN;
      let wasOpen = 0;
      for (const line of recordingLines(name)) {
        open = workAfter(open, feedRecordingLine(adapter, line, line.t));
        if (open === NOTHING_OPEN) continue;
        wasOpen += 1;
        expect(workAfter(open, endsOf(open, 's', line.t))).toEqual(NOTHING_OPEN);
      }
      expect(wasOpen).toBeGreaterThan(0);
      expect(workAfter(open, adapter.ended(0))).toEqual(NOTHING_OPEN);
    },
  );
});
