import { appendFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ScriptedTerminal } from '../../support/scripted-terminal';

type Step = (terminal: ScriptedTerminal) => void | Promise<void>;

const human = { origin: { kind: 'human' }, promptSource: 'typed', turnOrigin: 'human' };
const line =
  (type: string, message: object, more: object = {}): Step =>
  (terminal) =>
    terminal.line(type, message, more);
const user = (content: unknown, more: object = {}) => line('user', { role: 'user', content }, more);
const typed = (content: string) => user(content, human);
const notified = (text: string, more: object = {}) =>
  user(text, {
    origin: { kind: 'task-notification' },
    promptSource: 'system',
    turnOrigin: 'task_notification',
    ...more,
  });
const notice = (id: string, fields: string) =>
  `<task-notification><task-id>${id}</task-id>${fields}</task-notification>`;
const done = (id: string) => notified(notice(id, '<status>completed</status>'));
const event = (id: string, text: string) => notified(notice(id, `<event>${text}</event>`));
const fires = (content: string) => user(content, { isMeta: true, promptSource: 'system', turnOrigin: 'scheduled' });
const says =
  (text: string): Step =>
  (terminal) =>
    terminal.says(text);
const over: Step = (terminal) => terminal.isOver();
const pass =
  (ms: number): Step =>
  (terminal) =>
    terminal.pass(ms);
const write =
  (text: string): Step =>
  (terminal) =>
    appendFileSync(terminal.file, text);
const call = (id: string, name: string, input: object = {}) =>
  line('assistant', { id: `m-${id}`, stop_reason: 'tool_use', content: [{ type: 'tool_use', id, name, input }] });
const result = (id: string, toolUseResult: object) =>
  user([{ type: 'tool_result', tool_use_id: id, content: 'x' }], { toolUseResult });
const launch = (id: string): Step[] => [
  call(`c-${id}`, 'Bash', { description: id }),
  result(`c-${id}`, { stdout: '', backgroundTaskId: id }),
];
const stopped =
  (text: string, runs?: string[]): Step =>
  (terminal) =>
    terminal.mirror.stopped(null, text, terminal.claim(), runs);
const begins: Step = (terminal) => terminal.mirror.began(terminal.claim());
/** Runs a hook of this process. */
const hookOf =
  (pid: number): Step =>
  (terminal) => {
    terminal.mirror.hookRan(pid, null, terminal.now);
    return terminal.mirror.keep();
  };

const first = [typed('Go'), ...launch('b1'), says('Runs'), over];

/** An interrupted turn whose last lines arrive after the hooks of the next one. */
const behind: Step[] = [
  typed('Go'),
  (terminal) => terminal.mirror.prompted(terminal.claim()),
  (terminal) => terminal.mirror.prompted(terminal.claim()),
  (terminal) => terminal.mirror.stopped(null, 'On', terminal.claim()),
  pass(6_000),
  (terminal) => {
    const at = terminal.now - 6_350;
    terminal.line('user', { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] }, {}, at);
    terminal.line('user', { role: 'user', content: 'And' }, human, at + 30);
    terminal.says('On', at + 100);
  },
];

const STORIES: [string, Step[]][] = [
  ['a notice', [...first, done('b1'), says('Ended'), over]],
  [
    'a monitor',
    [
      typed('Go'),
      call('c1', 'Monitor'),
      result('c1', { taskId: 'b1', timeoutMs: 9_000, persistent: false }),
      says('On'),
      over,
      event('b1', 'same'),
      says('A'),
      over,
      event('b1', 'same'),
      says('B'),
      over,
      done('b1'),
      says('C'),
      over,
    ],
  ],
  [
    'a stop, and a notice of it',
    [
      typed('Go'),
      ...launch('b1'),
      call('c2', 'TaskStop', { task_id: 'b1' }),
      result('c2', { message: 'Successfully stopped task: b1', task_id: 'b1', task_type: 'local_bash' }),
      says('Stopped'),
      over,
      done('b1'),
      says('I know'),
      over,
    ],
  ],
  [
    'a list without the task',
    [
      ...first,
      stopped('Runs', []),
      pass(4_000),
      pass(2_000),
      typed('And'),
      says('On'),
      over,
      stopped('On', []),
      pass(9_000),
      done('b1'),
      says('After all'),
      over,
    ],
  ],
  ['a notice and a prompt', [...first, done('b1'), typed('And'), says('Both'), over]],
  ['a prompt and a notice', [...first, typed('And'), done('b1'), says('Both'), over]],
  [
    'two notices and a prompt',
    [
      typed('Go'),
      ...launch('b1'),
      ...launch('b2'),
      says('Run'),
      over,
      done('b1'),
      done('b2'),
      typed('And'),
      says('All'),
      over,
    ],
  ],
  [
    'a timer',
    [
      typed('Go'),
      call('c1', 'ScheduleWakeup', { reason: 'the build', prompt: 'Check' }),
      result('c1', { scheduledFor: 9 }),
      says('Set'),
      over,
      fires('Check'),
      says('Checked'),
      over,
    ],
  ],
  [
    'a job that fires twice',
    [
      typed('Go'),
      call('c1', 'CronCreate', { cron: '* * * * *', prompt: 'Check' }),
      result('c1', { id: 'j1', humanSchedule: 'Every minute' }),
      says('Set'),
      over,
      fires('Check'),
      says('A'),
      over,
      fires('Check'),
      says('B'),
      over,
    ],
  ],
  [
    'commands',
    [
      user('<command-name>/model</command-name>'),
      user('<local-command-stdout>Set</local-command-stdout>'),
      user('<bash-input>ls</bash-input>'),
      user('<bash-stdout>a</bash-stdout>'),
      user('<command-name>/clear</command-name>'),
      typed('Go'),
      says('Ok'),
      over,
    ],
  ],
  [
    'a command that nothing follows',
    [
      typed('Go'),
      says('Ok'),
      over,
      user('<command-name>/clear</command-name>'),
      pass(2_000),
      pass(2_000),
      typed('And'),
      says('Yes'),
      over,
    ],
  ],
  [
    'a command in mid-turn',
    [
      typed('Go'),
      call('c1', 'Read'),
      user('<command-name>/model</command-name>'),
      user('<local-command-stdout>Set</local-command-stdout>'),
      result('c1', {}),
      says('Ok'),
      over,
    ],
  ],
  [
    'damage',
    [
      typed('Go'),
      write('half {"type":"us\n'),
      write('half {"type":"us\n'),
      says('Ok'),
      write('\0\0\0'),
      over,
      typed('And'),
      write('[1]\n'),
      says('Yes'),
      over,
    ],
  ],
  [
    'the same call id',
    [
      typed('Go'),
      call('c1', 'Read', { n: 1 }),
      result('c1', {}),
      call('c1', 'Read', { n: 2 }),
      result('c1', {}),
      says('Ok'),
      over,
    ],
  ],
  [
    'a turn left open, and another process',
    [
      typed('Go'),
      ...launch('b1'),
      call('c1', 'Read'),
      pass(2_000),
      begins,
      pass(1_000),
      typed('And'),
      says('On'),
      over,
    ],
  ],
  [
    'a prompt left open, and another process',
    [typed('Go'), pass(2_000), begins, pass(1_000), typed('And'), says('On'), over],
  ],
  [
    'another process that only its pid tells of',
    [
      hookOf(2_147_483_000),
      typed('Go'),
      ...launch('b1'),
      call('c1', 'Read'),
      pass(2_000),
      hookOf(2_147_483_000),
      pass(500),
      hookOf(2_147_483_001),
      pass(1_000),
      typed('And'),
      says('On'),
      over,
    ],
  ],
  [
    'a turn of the new process, heard of late',
    [
      typed('Go'),
      ...launch('b1'),
      call('c1', 'Read'),
      pass(5_000),
      typed('And'),
      call('c2', 'Read'),
      (terminal) => terminal.mirror.began(terminal.claim(terminal.now - 1_000)),
      pass(1_000),
      result('c2', {}),
      says('On'),
      over,
    ],
  ],
  [
    'a list without the task, and another process',
    [...first, stopped('Runs', []), pass(6_000), begins, pass(1_000), typed('And'), says('On'), over],
  ],
  ['an interrupted turn that is behind the next one', behind],
  [
    'a fork',
    [
      user('Go', { ...human, sessionId: 's', forkedFrom: { sessionId: 's0' } }),
      says('Ok'),
      over,
      typed('On'),
      says('Yes'),
      over,
    ],
  ],
];

async function play(steps: readonly Step[], restartsAfter: number | null): Promise<string[]> {
  const terminal = await ScriptedTerminal.begin();
  for (const [index, step] of steps.entries()) {
    await step(terminal);
    await terminal.pass(100);
    if (index === restartsAfter) await terminal.takeOver();
  }
  await terminal.pass(10_000);
  await terminal.pass(10_000);
  return terminal.events.map((one) => JSON.stringify(one));
}

/** The companion restarts after each step. */
describe('a restarted companion repeats nothing and loses nothing', () => {
  test.each(STORIES)('%s', async (_, steps) => {
    const whole = await play(steps, null);
    expect(whole.length).toBeGreaterThan(5);
    if (steps === behind) expect(whole.filter((one) => one.includes('cancelled'))).toHaveLength(1);
    for (const at of steps.keys()) expect(await play(steps, at), `after step ${at + 1}`).toEqual(whole);
  });
});

describe('a second terminal on the same session', () => {
  test('does not end work of the first one', async () => {
    const terminal = await ScriptedTerminal.begin();
    // It is compared with the start times of real processes.
    terminal.now = Date.now();
    const steps = [hookOf(process.ppid), typed('Go'), ...launch('b1'), pass(1_000), hookOf(process.pid), begins];
    for (const step of [...steps, pass(6_000)]) await step(terminal);
    const ends = ['RUN_FINISHED', 'RUN_ERROR', 'task:completed'];
    expect(terminal.events.filter(({ type, name }) => ends.includes(String(name ?? type)))).toEqual([]);
  });
});
