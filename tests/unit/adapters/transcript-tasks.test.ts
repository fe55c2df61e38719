import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { describe, expect, test } from 'vitest';
import { calls, launches, notice, over, ReadLines, returns, says, typed, user, woken } from './transcript-lines';

const inSub = { agentId: 'a1', isSidechain: true };
const customs = (lines: ReadLines, name: string) =>
  lines.story.customs.flatMap((event) => (event.name === name ? [event.value as TaskEventValue] : []));
/** A call and its result. */
const called = (name: string, input: object, content: unknown, result?: unknown, more: object = {}) => [
  { ...calls(`c ${name}`, name, input), ...more },
  returns(`c ${name}`, content, result, more),
];
const ends = (id: string) => woken(notice(id, '<status>completed</status><summary>Done</summary>'));

/** Detection by the shape of a result, for any tool. */
describe('a result that names background work', () => {
  test.each<[string, object, string, string | undefined]>([
    ['a command', { stdout: '', backgroundTaskId: 'b1' }, 'b1', 'local_bash'],
    ['a subagent', { isAsync: true, status: 'async_launched', agentId: 'b1' }, 'b1', 'local_agent'],
    ['a subagent that moved', { status: 'async_launched', agentId: 'b1', outputFile: '' }, 'b1', 'local_agent'],
    ['an agent in the cloud', { status: 'remote_launched', taskId: 'b1', sessionUrl: 'u' }, 'b1', 'remote_agent'],
    ['a monitor', { taskId: 'b1', timeoutMs: 60_000, persistent: false }, 'b1', 'monitor'],
    [
      'a workflow',
      { status: 'async_launched', taskId: 'b1', taskType: 'local_workflow', runId: 'wf' },
      'b1',
      'local_workflow',
    ],
    ['a skill', { status: 'forked', background: true, agentId: 'b1', commandName: 'x' }, 'b1', 'local_agent'],
    ['a resumed subagent', { success: true, message: 'Resumed', resumedAgentId: 'b1' }, 'b1', 'local_agent'],
    ['a job of a later tool', { status: 'async_launched', jobId: 'b1', sessionId: 's' }, 'b1', undefined],
    ['a command of a later tool', { backgroundTaskId: 'b1', message: 'x' }, 'b1', undefined],
  ])('opens a task: %s', (_, result, id, type) => {
    for (const where of [{}, inSub]) {
      const lines = new ReadLines().read(
        typed('Go'),
        ...called('New', { description: 'D' }, 'x', result, where),
        says('Runs'),
        over,
      );
      expect(lines.tasks).toEqual([`${id} running`]);
      expect(customs(lines, 'task:started')).toMatchObject([
        { description: 'D', ...(type === undefined ? {} : { task_type: type }) },
      ]);
      lines.read(ends(id), says('Ended'), over);
      expect(lines.tasks).toEqual([`${id} completed`]);
      expect(lines.turns).toEqual(['user "Go": success', `task ${id}: success`]);
    }
  });

  test.each([
    [
      'a to-do',
      { taskId: '1', success: true, updatedFields: ['status'], statusChange: { from: 'pending', to: 'completed' } },
    ],
    ['a new to-do', { task: { id: '1', subject: 'x' } }],
    ['a subagent that has answered', { status: 'completed', agentId: 'a9', content: [] }],
    ['a skill that has answered', { status: 'forked', agentId: 'a9', result: 'x' }],
    [
      'a workflow that does not compile',
      { status: 'async_launched', taskId: 'w1', taskType: 'local_workflow', error: 'SyntaxError' },
    ],
    ['what a command prints', { stdout: 'Command running in background with ID: b1. Output', stderr: '' }],
    ['the result of another server', [{ type: 'text', text: '{"taskId":"b1","isAsync":true}' }]],
    ['a job that is not scheduled yet', { id: 'c1', humanSchedule: 'Every minute', recurring: true }],
    ['an error', 'Error: Command running in background with ID: b1.'],
  ])('is not background work: %s', (_, result) => {
    const text = 'Command running in background with ID: b1. Output is';
    const lines = new ReadLines().read(typed('Go'), ...called('New', {}, text, result), says('Ok'), over);
    expect(lines.tasks).toEqual([]);
  });

  test.each([
    ['in the foreground', { command: 'cat log' }, []],
    ['in the background', { command: 'x', run_in_background: true }, ['b1 running']],
  ])('has only text in a subagent, which a command may print too: %s', (_, input, tasks) => {
    const text = 'Command running in background with ID: b1. Output is';
    const lines = new ReadLines().read(typed('Go'), ...called('Bash', input, text, undefined, inSub));
    expect(lines.tasks).toEqual(tasks);
  });

  test('opens a task of a nested subagent', () => {
    const launch = { isAsync: true, status: 'async_launched' };
    const lines = new ReadLines().read(typed('Go'), ...called('Agent', {}, 'x', { ...launch, agentId: 'a1' }));
    lines.read(
      ...called('Agent2', {}, 'x', { ...launch, agentId: 'a2' }, inSub),
      ...launches('b1', { ...inSub, agentId: 'a2' }),
    );
    expect(lines.tasks).toEqual(['a1 running', 'a2 running', 'b1 running']);
    expect(lines.adapter.tasks.subagents).toEqual(['a1', 'a2']);
    expect(customs(lines, 'task:started').map(({ parent_task_id: parent }) => parent)).toEqual([undefined, 'a1', 'a2']);
  });

  test('of a resumed subagent opens its second run and ends it', () => {
    const lines = new ReadLines().read(
      typed('Go'),
      ...called('Agent', { description: 'Explore' }, 'x', { status: 'async_launched', agentId: 'a1' }),
    );
    lines.read(says('Runs'), over, ends('a1'));
    lines.read(
      ...called('SendMessage', { to: 'a1' }, 'x', { success: true, message: 'Resumed', resumedAgentId: 'a1' }),
      says('On'),
      over,
    );
    expect(customs(lines, 'task:started')).toMatchObject([
      { description: 'Explore' },
      { description: 'Explore', run_id: 'a1-2' },
    ]);
    // The same text for another run.
    lines.read(ends('a1'), says('Ended'), over);
    expect(lines.tasks).toEqual(['a1 completed, completed']);
  });
});

describe('a task ends by', () => {
  const stopped = {
    message: 'Successfully stopped task: b1 (sleep 9)',
    task_id: 'b1',
    task_type: 'local_bash',
    command: 'sleep 9',
  };
  const done = { taskId: 'b1', status: 'completed', exitCode: 3, stdout: '' };
  const read =
    '<retrieval_status>success</retrieval_status>\n<task_id>b1</task_id>\n<status>failed</status>\n<exit_code>2</exit_code>';
  test.each<[string, object, string, unknown, object, string]>([
    ['TaskStop', { task_id: 'b1' }, 'x', stopped, {}, 'stopped'],
    ['KillShell', { shell_id: 'b1' }, 'x', { message: 'Successfully killed shell: b1', shell_id: 'b1' }, {}, 'stopped'],
    ['BashOutput', { bash_id: 'b1' }, 'x', { ...done, taskId: undefined, shellId: 'b1' }, {}, 'completed'],
    [
      'TaskOutput',
      { task_id: 'b1' },
      'x',
      { retrieval_status: 'success', task: { task_id: 'b1', status: 'failed', exitCode: 2 } },
      {},
      'failed',
    ],
    ['TaskStop in a subagent', { task_id: 'b1' }, JSON.stringify(stopped), undefined, inSub, 'stopped'],
    [
      'KillShell in a subagent',
      { shell_id: 'b1' },
      '{"message":"Successfully killed shell: b1","shell_id":"b1"}',
      undefined,
      inSub,
      'stopped',
    ],
    ['TaskOutput in a subagent', { task_id: 'b1' }, read, undefined, inSub, 'failed'],
    [
      'BashOutput while it runs',
      { bash_id: 'b1' },
      'x',
      { shellId: 'b1', status: 'running', exitCode: null },
      {},
      'running',
    ],
    ['TaskStop of another', { task_id: 'zz' }, 'x', { ...stopped, task_id: 'zz' }, {}, 'running'],
    [
      'TaskStop that is not sure',
      { task_id: 'b1' },
      'x',
      { ...stopped, message: 'Task b1 may still be running: the machine' },
      {},
      'running',
    ],
    ['a command that prints as much', { command: 'cat log' }, JSON.stringify(stopped), undefined, inSub, 'running'],
  ])('%s', (name, input, text, result, where, status) => {
    const lines = new ReadLines().read(typed('Go'), ...launches('b1'), ...called(name, input, text, result, where));
    expect(lines.tasks).toEqual([`b1 ${status}`]);
    // A later line repeats it.
    if (status === 'running') return;
    lines.read(says('Stopped'), over, woken(notice('b1', '<status>killed</status>')), says('I know'), over);
    expect(lines.tasks).toEqual([`b1 ${status}`]);
  });

  test('a notification of a known end, which still triggers its turn', () => {
    const task = { task_id: 'b1', status: 'completed', exitCode: 3 };
    const lines = new ReadLines().read(
      typed('Go'),
      ...launches('b1'),
      ...called('TaskOutput', { task_id: 'b1' }, 'x', { retrieval_status: 'success', task }),
      says('It has ended'),
      over,
      ends('b1'),
      says('I know'),
      over,
    );
    expect(lines.tasks).toEqual(['b1 completed']);
    expect(lines.turns).toEqual(['user "Go": success', 'task b1: success']);
  });

  test('a notification to a subagent, wherever it is written', () => {
    const text = notice('b1', '<status>completed</status>');
    const queue = {
      type: 'queue-operation',
      uuid: undefined,
      operation: 'remove',
      reason: 'delivered_to_agent',
      content: text,
    };
    const lines = new ReadLines().read(
      typed('Go'),
      ...launches('b1', inSub),
      queue,
      user(`[SYSTEM]\n\n${text}`, { ...inSub, isMeta: true, origin: { kind: 'task-notification' } }),
    );
    lines.read(says('Ok'), over);
    expect(lines.tasks).toEqual(['b1 completed']);
    expect(lines.turns).toEqual(['user "Go": success']);
  });
});

describe('a monitor', () => {
  const event = (text: string) => woken(notice('b1', `<summary>Monitor event: "m"</summary>\n<event>${text}</event>`));
  const watches = (timeoutMs = 60_000) =>
    called('Monitor', { description: 'm' }, 'x', { taskId: 'b1', timeoutMs, persistent: false });
  const outputs = (lines: ReadLines) =>
    customs(lines, 'task:output').map((value) => (value as unknown as { text: string }).text);

  test('reports equal events once each, and each triggers a turn', () => {
    const lines = new ReadLines().read(typed('Go'), ...watches(), says('Watching'), over);
    for (let count = 0; count < 50; count += 1) lines.read(event('same'), says(`Noted ${count}`), over);
    expect(outputs(lines)).toEqual(Array(50).fill('same\n'));
    expect(lines.turns.slice(1)).toEqual(Array(50).fill('task b1: success'));
    expect(lines.tasks).toEqual(['b1 running']);
    lines.read(
      woken(
        notice(
          'b1',
          '<status>completed</status><summary>Monitor "m" stream ended</summary>\n<event>last &lt;b&gt;</event>',
        ),
      ),
      says('Over'),
      over,
    );
    expect(outputs(lines).at(-1)).toBe('last <b>\n');
    expect(lines.tasks).toEqual(['b1 completed']);
  });

  test.each([
    ['[Monitor expired after 3s with no events delivered. Re-arm it]', 3_000, 'completed'],
    ['[Monitor timed out — re-arm if needed.]', 3_000, 'completed'],
    ['[Monitor stopped — too much output (9 events suppressed over 3s).]', 60_000, 'stopped'],
    ['[Monitor expired after 60s], says its command', 60_000, 'running'],
    ['Monitor stopped', 3_000, 'running'],
  ])('reports its own end as an event: %s', (text, timeoutMs, status) => {
    const lines = new ReadLines().read(
      typed('Go'),
      ...watches(timeoutMs),
      says('Watching'),
      over,
      event(text),
      says('Noted'),
      over,
    );
    expect(lines.tasks).toEqual([`b1 ${status}`]);
    expect(lines.turns.at(-1)).toBe('task b1: success');
  });

  test('that is unknown triggers a turn alone', () => {
    const lines = new ReadLines().read(
      typed('Go'),
      ...launches('b2'),
      says('Runs'),
      over,
      event('late'),
      says('Noted'),
      over,
    );
    expect(lines.turns.at(-1)).toBe('unknown: success');
  });
});

/** One turn answers all prompts, with all causes. */
describe('prompts drained together', () => {
  const first = woken(notice('b1'));
  const second = woken(notice('b2'));
  const both = [...launches('b1'), ...launches('b2')];
  test.each([
    ['a notice and a prompt', [first, typed('And')], ['user "And": success'], ['b1']],
    ['a prompt and a notice', [typed('And'), first], ['user "And": success'], ['b1']],
    ['two notices and a prompt', [first, second, typed('And')], ['user "And": success'], ['b1', 'b2']],
    ['a notice, a prompt and a notice', [first, typed('And'), second], ['user "And": success'], ['b1', 'b2']],
    ['two prompts and a notice', [typed('And'), typed('More'), first], ['user "And" "More": success'], ['b1']],
    ['two notices in one prompt', [woken(`${notice('b1')}\n\n${notice('b2')}`)], ['task b1 b2: success'], []],
    ['two notices', [first, second], ['task b1 b2: success'], []],
    [
      'a notice for the transcript only',
      [{ ...first, queueTranscriptOnly: true }, typed('And')],
      ['user "And": success'],
      ['b1'],
    ],
    [
      'a timer and a prompt',
      [user('Look', { isMeta: true, turnOrigin: 'scheduled' }), typed('And')],
      ['user "And": success'],
      [],
    ],
    [
      'a notice and a timer',
      [first, user('Look', { isMeta: true, turnOrigin: 'scheduled' })],
      ['task b1: success'],
      [],
    ],
  ])('%s', (_, prompts, turns, folded) => {
    const lines = new ReadLines().read(typed('Go'), ...both, says('Run'), over, ...prompts, says('Ok'), over);
    expect(lines.turns.slice(1)).toEqual(turns);
    expect(lines.story.turns.at(-1)?.foldedTaskIds).toEqual(folded);
  });
});

test('keeps a timer as the cause when a prompt joins', () => {
  const lines = new ReadLines().read(
    user('Look', { isMeta: true, turnOrigin: 'scheduled' }),
    typed('And'),
    says('Ok'),
    over,
  );
  expect(lines.turns).toEqual(['user "And": success']);
  expect(lines.story.turns.map(({ startTrigger, trigger }) => [startTrigger, trigger])).toEqual([
    [
      { kind: 'timer', taskIds: [], reason: 'Look' },
      { kind: 'timer', taskIds: [], reason: 'Look' },
    ],
  ]);
});

/** Wake-ups scheduled by the agent. */
describe('a timer', () => {
  const fires = (prompt: string) => user(prompt, { isMeta: true, promptSource: 'system', turnOrigin: 'scheduled' });
  const cron = (id: string, prompt: string, schedule: string) => [
    calls(`c ${id}`, 'CronCreate', { cron: '* * * * *', prompt, recurring: true }),
    returns(`c ${id}`, 'x', { id, humanSchedule: schedule, recurring: true }),
  ];
  const wakeUp = (prompt: string, reason: string) => [
    calls(`c ${reason}`, 'ScheduleWakeup', { delaySeconds: 60, reason, prompt }),
    returns(`c ${reason}`, 'x', { scheduledFor: 90_000 }),
  ];
  const reasons = (lines: ReadLines) =>
    lines.story.turns.flatMap(({ trigger }) => (trigger?.kind === 'timer' ? [[trigger.reason, trigger.setAt]] : []));

  test.each([
    ['a wake-up', [...wakeUp('Check', 'the build')], [fires('Check')], [['the build', 3_000]]],
    [
      'a job, each time',
      [...cron('j1', 'Check', 'Every minute')],
      [fires('Check'), fires('Check')],
      [
        ['Every minute', 3_000],
        ['Every minute', 3_000],
      ],
    ],
    [
      'the same prompt, set again',
      [...wakeUp('Check', 'one'), ...wakeUp('Check', 'two')],
      [fires('Check')],
      [['two', 5_000]],
    ],
    ['one set unseen', [], [fires('Check the build')], [['Check the build', undefined]]],
    [
      'a job that shares its prompt',
      [...cron('j1', 'Check', 'A'), ...cron('j2', 'Check', 'B')],
      [{ type: 'system', subtype: 'scheduled_task_fire', taskId: 'j1' }, fires('Check')],
      [['A', 3_000]],
    ],
  ])('%s', (_, sets, prompts, expected) => {
    const lines = new ReadLines().read(typed('Go'), ...sets, says('Set'), over);
    for (const prompt of prompts)
      lines.read(prompt, ...('subtype' in prompt ? [] : [says(`Checked ${lines.events.length}`), over]));
    expect(reasons(lines)).toEqual(expected);
  });
});
