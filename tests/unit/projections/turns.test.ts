import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { placeEvents } from '@interlude/protocol/projections/turns';
import { describe, expect, it } from 'vitest';
import {
  custom,
  runEnds,
  runStarts,
  says,
  seen,
  taskEnds,
  taskStarts,
  told,
  turnsOf,
  userSays,
  wokenBy,
} from './session-story';

describe('a turn', () => {
  it('claims the earlier user message that it answers', () => {
    const log = told(
      userSays('u1', 'Hello'),
      runStarts('r1', { turn: 'user', userMessageIds: ['u1'] }),
      says('m1', 'Hi'),
      runEnds('r1'),
    );
    expect(turnsOf(log)).toEqual({ 'user r1 finished': ['user: Hello', 'assistant: Hi'] });
  });

  it('answers all waiting messages if its run names none', () => {
    const log = told(userSays('u1', 'One'), userSays('u2', 'Two'), runStarts('r1'), says('m1', 'Both'));
    expect(turnsOf(log)).toEqual({ 'user r1 open': ['user: One', 'user: Two', 'assistant: Both'] });
  });

  it('takes the new user messages from a plain AG-UI run input', () => {
    const messages = [
      { id: 'u0', role: 'user', content: 'Old' },
      { id: 'm0', role: 'assistant', content: 'Older answer' },
      { id: 'u1', role: 'user', content: [{ type: 'text', text: 'New' }] },
    ];
    const log = told([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1', input: { messages } }], says('m1', 'Sure'));
    const [turn] = log.page().turns;
    expect(seen(turn)).toEqual(['user: New', 'assistant: Sure']);
    expect(turn?.userMessageIds).toEqual(['u1']);
  });

  it('is between-run when a run without input names a parent', () => {
    const log = told([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2', parentRunId: 'r1' }]);
    expect(log.page().turns[0]).toMatchObject({
      kind: 'between-run',
      parentTurnId: 'r1',
      trigger: { kind: 'unknown' },
    });
  });

  it('is interrupted when the next one starts', () => {
    const log = told(runStarts('r1'), says('m1', 'Half'), runStarts('r2'));
    expect(Object.keys(turnsOf(log))).toEqual(['user r1 interrupted', 'user r2 open']);
  });

  it('is interrupted when the agent dies, with a line outside the turn', () => {
    const log = told(runStarts('r1'), custom('session:ended', { reason: 'killed', exitCode: 137 }));
    expect(turnsOf(log)).toEqual({
      'user r1 interrupted': [],
      'none none:5 finished': ["notice: The agent's process ended with exit code 137: killed."],
    });
  });

  it.each([
    [{ all: 4, gathering: 3 }, ' 3 of 4 tool calls only read, listed or searched.'],
    [{ all: 0, gathering: 0 }, ''],
    [{ all: 2, gathering: 3 }, ''],
    [{ all: '4', gathering: {} }, ''],
    ['four', ''],
  ])('ends with a valid count of read-only calls: %j', (calls, said) => {
    const log = told(custom('session:ended', { reason: 'left', tool_calls: calls }));
    expect(Object.values(turnsOf(log)).flat()).toEqual([`notice: The agent's process ended: left.${said}`]);
  });

  it('fails with its run error and settles its items', () => {
    const log = told(
      runStarts('r1'),
      [{ type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Bash' }],
      [{ type: 'RUN_ERROR', message: 'Credit balance is too low', code: 'billing_error' }],
    );
    const [turn] = log.page().turns;
    expect(turn).toMatchObject({
      state: 'failed',
      error: { message: 'Credit balance is too low', code: 'billing_error' },
    });
    expect(seen(turn)).toEqual(['Bash failed: null']);
  });
});

describe('a between-run turn', () => {
  it('starts with the task end that woke it', () => {
    const log = told(
      runStarts('r1', { turn: 'user' }),
      taskStarts('b1'),
      runEnds('r1'),
      taskEnds('b1', 'failed', { exit_code: 3 }),
      runStarts('r2', wokenBy('b1')),
      says('m1', 'Poll exited with code 3'),
      runEnds('r2'),
    );
    expect(turnsOf(log)).toEqual({
      'user r1 finished': ['task b1 started'],
      'between-run r2 finished': ['task b1 failed', 'assistant: Poll exited with code 3'],
    });
    expect([...log.tasks.values()]).toMatchObject([
      { id: 'b1', status: 'failed', exitCode: 3, startedInTurnId: 'r1', answeredInTurnId: 'r2', kind: 'shell' },
    ]);
  });

  it('starts with the task’s own end rather than another session’s report', () => {
    const reported = taskEnds('b1', 'stopped').map((event) => ({
      ...event,
      metadata: { interlude: { reportedBy: 's2' } },
    }));
    const story = [
      runStarts('r1', { turn: 'user' }),
      taskStarts('b1'),
      runEnds('r1'),
      reported,
      taskEnds('b1', 'failed'),
    ];
    for (const woken of [wokenBy('b1'), null]) {
      const starts = runStarts('r2', woken ?? {}).map((event) => ({
        ...event,
        ...(woken === null ? { parentRunId: 'r1' } : {}),
      }));
      const log = told(...story, reported, starts, runEnds('r2'));
      const turn = log.page().turns.find(({ id }) => id === 'r2');
      expect([turn?.trigger?.taskIds, seen(turn)]).toEqual([['b1'], ['task b1 failed']]);
    }
  });

  it('claims a task that ended during a user turn', () => {
    const log = told(
      runStarts('r1', { turn: 'user' }),
      taskStarts('b1'),
      taskEnds('b1', 'completed'),
      says('m1', 'Still talking'),
      runEnds('r1'),
      runStarts('r2', wokenBy('b1')),
      says('m2', 'It is done'),
    );
    expect(turnsOf(log)).toEqual({
      'user r1 finished': ['task b1 started', 'assistant: Still talking'],
      'between-run r2 open': ['task b1 completed', 'assistant: It is done'],
    });
  });

  it('names all tasks of a coalesced answer at its end', () => {
    const log = told(
      taskEnds('b1', 'completed'),
      taskEnds('b2', 'failed'),
      runStarts('r1', wokenBy('b2')),
      runEnds('r1', wokenBy('b1', 'b2')),
    );
    expect(turnsOf(log)).toEqual({ 'between-run r1 finished': ['task b1 completed', 'task b2 failed'] });
    expect(log.page().turns[0]?.trigger?.taskIds).toEqual(['b1', 'b2']);
    expect([...log.tasks.values()].map((task) => task.answeredInTurnId)).toEqual(['r1', 'r1']);
  });

  it('leaves a message that arrives meanwhile to the next turn', () => {
    const log = told(
      runStarts('r1', wokenBy('b1')),
      userSays('u1', 'And now?'),
      says('m1', 'About the poll'),
      runEnds('r1'),
      runStarts('r2', { turn: 'user', userMessageIds: ['u1'] }),
      says('m2', 'About you'),
    );
    expect(turnsOf(log)).toEqual({
      'between-run r1 finished': ['assistant: About the poll'],
      'user r2 open': ['user: And now?', 'assistant: About you'],
    });
  });

  it('ignores a task end with another run id', () => {
    const log = told(
      taskEnds('b1', 'completed', { run_id: 'x' }),
      runStarts('r1', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['b1'], taskRunIds: ['y'] } }),
    );
    expect(turnsOf(log)).toEqual({ 'none none:1 finished': ['task b1 completed'], 'between-run r1 open': [] });
  });
});

describe('outside any turn', () => {
  it('items appear in order in a list of their own', () => {
    const log = told(
      runStarts('r1'),
      runEnds('r1'),
      says('m1', 'By the way'),
      custom('interlude:lost', { count: 12, reason: 'outbox-full' }),
      taskEnds('b1', 'stopped'),
      says('m2', 'Later'),
      runStarts('r2'),
    );
    expect(Object.values(turnsOf(log))).toEqual([
      [],
      ['assistant: By the way', 'notice: 12 records were lost here before reaching Interlude (outbox-full).'],
      ['task b1 stopped'],
      ['assistant: Later'],
      [],
    ]);
  });

  it('a late tool result appears with its call', () => {
    const log = told(
      runStarts('r1'),
      [{ type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'AskUserQuestion' }],
      [{ type: 'TOOL_CALL_END', toolCallId: 't1' }],
      runEnds('r1'),
      runStarts('r2'),
      [{ type: 'TOOL_CALL_RESULT', toolCallId: 't1', messageId: 'x', content: 'Blue' }],
    );
    expect(turnsOf(log)).toEqual({ 'user r1 finished': ['AskUserQuestion completed: Blue'], 'user r2 open': [] });
  });

  it('subagent text appears under its task', () => {
    const log = told(runStarts('r1'), taskStarts('a1'), says('m1', 'Searching', 'assistant', { subagentRunId: 'a1' }));
    expect(turnsOf(log)).toEqual({ 'user r1 open': ['task a1 started'] });
    expect(log.rows.filter((row) => row.turnId === 'task:a1')).toHaveLength(3);
  });
});

describe('the state between two events', () => {
  it('is the same object after deltas', () => {
    const start = placeEvents(
      NO_PLACES,
      told(runStarts('r1'), says('m1', 'a').slice(0, 2)).rows.map((row) => row.entry),
    );
    const delta = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'b' };
    const next = placeEvents(start.places, [{ position: '99', occurredAt: 1, receivedAt: 1, event: delta }]);
    expect(next.places).toBe(start.places);
  });

  it('does not grow with history', () => {
    const log = told();
    for (let n = 0; n < 400; n++) {
      log.append([
        ...userSays(`u${n}`, 'x'),
        ...runStarts(`r${n}`),
        ...says(`m${n}`, 'y'),
        ...taskEnds(`b${n}`, 'stopped'),
        ...runEnds(`r${n}`),
      ]);
    }
    expect(JSON.stringify(log.places).length).toBeLessThan(40_000);
    expect(log.places.userMessages).toEqual([]);
  });
});

describe('an agent that speaks plain AG-UI', () => {
  it('may report the answered message within the run', () => {
    const log = told(
      [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' }],
      userSays('u1', 'One'),
      says('m1', 'First'),
      [{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' }],
      [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2' }],
      userSays('u2', 'Two'),
      says('m2', 'Second'),
    );
    expect(turnsOf(log)).toEqual({
      'user r1 finished': ['user: One', 'assistant: First'],
      'user r2 open': ['user: Two', 'assistant: Second'],
    });
    expect(log.page().turns.map((turn) => turn.userMessageIds)).toEqual([['u1'], ['u2']]);
  });

  it('leaves a queued message to the run that reads it', () => {
    const typed = says('u1', 'Hello?', 'user', { metadata: { interlude: { delivery: 'queued' } } });
    const log = told(runStarts('r1'), typed, says('m1', 'Busy'), runEnds('r1'));
    expect(turnsOf(log)).toEqual({ 'user r1 finished': ['assistant: Busy'], 'none none:5 finished': ['user: Hello?'] });
  });

  it('leaves a message after the start of the answer to the next run', () => {
    const log = told(
      [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' }],
      says('m1', 'Working'),
      userSays('u1', 'And this?'),
      [{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' }],
      [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2' }],
    );
    expect(turnsOf(log)).toEqual({ 'user r1 finished': ['assistant: Working'], 'user r2 open': ['user: And this?'] });
  });

  it('keeps the messages of a repeated run', () => {
    const start = { type: 'RUN_STARTED', threadId: 's1', runId: 'r1' };
    const log = told(userSays('u1', 'One'), [start], [start]);
    expect(log.page().turns[0]?.userMessageIds).toEqual(['u1']);
  });

  it('infers ended tasks as the trigger of a run with only a parent', () => {
    const log = told(
      taskStarts('t1'),
      taskEnds('t1', 'failed', { summary: 'Background command "Poll" failed with exit code 3' }),
      [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r2', parentRunId: 'r1' }],
      says('m1', 'It failed'),
    );
    const turn = log.page().turns.at(-1);
    expect(turn).toMatchObject({ kind: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } });
    expect(seen(turn)).toEqual(['task t1 failed', 'assistant: It failed']);
    expect([...log.tasks.values()]).toMatchObject([{ exitCode: 3, answeredInTurnId: 'r2' }]);
  });

  it('may end a message of an interrupted run', () => {
    const [start, half] = says('m1', 'Half ') as [AgUiEvent, AgUiEvent];
    const log = told(runStarts('r1'), [start, half], runStarts('r2'), [{ ...half, delta: 'late' }]);
    expect(turnsOf(log)).toEqual({ 'user r1 interrupted': ['assistant: Half late'], 'user r2 open': [] });
  });
});

describe('malformed interlude metadata', () => {
  it.each([{ kind: 'task' }, { kind: 'task', taskIds: [null, {}, 5] }, 'str', 7, ['x'], { taskIds: 'b1' }])(
    'is dropped: %j',
    (trigger) => {
      const metadata = { interlude: { turn: 'between-run', trigger, userMessageIds: 'u1', replyTo: 4, from: 'me' } };
      const event = { type: 'RUN_STARTED', threadId: 's1', runId: 'r1', metadata } as unknown as AgUiEvent;
      const end = { ...event, type: 'RUN_FINISHED' };
      const [turn] = told([event], [end]).page().turns;
      expect(turn?.trigger?.taskIds).toEqual([]);
      expect(turn?.userMessageIds).toEqual([]);
    },
  );
});
