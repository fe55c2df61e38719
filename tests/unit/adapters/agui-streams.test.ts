import { AgUiAdapter } from '@interlude/runner/adapters/agui/agui-adapter';
import type { AgUiAdapterOptions } from '@interlude/runner/adapters/agui/agui-thread';
import { applyPatch } from '@interlude/runner/adapters/agui/background-tasks';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents } from '../../support/recordings';

const S = { threadId: 't', runId: 'own' };

/** An adapter fed frame by frame under a simulated clock. */
function wire(options: Partial<AgUiAdapterOptions> = {}) {
  let runs = 0;
  let now = 0;
  const told: EmittedEvent[] = [];
  const adapter = new AgUiAdapter({ sessionOf: () => 's', newRunId: () => `made-${++runs}`, ...options });
  const hear = (msg: object) => void told.push(...adapter.read({ dir: 'in', msg }, now));
  return {
    adapter,
    told,
    lines: () => eventLines(told),
    post(runId: string, text: string, more: object = {}) {
      const messages = [{ id: `m-${runId}`, role: 'user', content: text }];
      const body = { threadId: 't', runId, messages, ...more };
      told.push(...adapter.read({ dir: 'out', msg: { method: 'POST', path: '/', body } }, now));
    },
    accept: (runId: string) => hear({ stream: 'run', runId, status: 200 }),
    run: (runId: string, ...events: object[]) => {
      for (const event of events) hear({ stream: 'run', runId, event });
    },
    between: (...events: object[]) => {
      for (const event of events) hear({ stream: 'events', event });
    },
    ended: (stream: 'run' | 'events', runId = '', reason: string | null = null) =>
      hear({ stream, runId, ended: reason }),
    /** The event stream breaks and the runner reopens it. */
    breaks: () => hear({ stream: 'events', ended: 'ECONNRESET', isReopened: true }),
    opens: (unheardSince?: number) => hear({ stream: 'events', opened: '/events', threadId: 't', unheardSince }),
    hear,
    pass(ms: number) {
      now += ms;
      if (adapter.dueAt !== null && adapter.dueAt <= now) told.push(...adapter.elapsed(now));
    },
    close() {
      told.push(...adapter.ended({ reason: 'over' }, now));
      expectValidEvents(told);
    },
  };
}

const text = (id: string, ...deltas: string[]) => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
  ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta })),
];
const saidIn = (told: readonly EmittedEvent[]) => told.map(({ event }) => event.delta ?? '').join('');
const turnsIn = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => /^RUN_/.test(line))
    .map((line) => line.slice(0, 36));

describe('one turn at a time', () => {
  test('delays a posted run until the between-run turn ends', () => {
    const { post, accept, run, between, told, close } = wire();
    between({ type: 'RUN_STARTED', ...S }, ...text('a', 'Mine'));
    post('r1', 'Yours?');
    accept('r1');
    run('r1', { type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, ...text('b', 'Yours'));
    expect(told.filter(({ event }) => event.type === 'RUN_STARTED')).toHaveLength(1);
    between({ type: 'RUN_FINISHED', ...S });
    run('r1', { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' });
    close();
    expect(told.map(({ event }) => event.runId).filter(Boolean)).toEqual(['own', 'own', 'r1', 'r1']);
  });

  test('limits the delay, and later events continue in another turn', () => {
    const { post, accept, run, between, pass, lines, close } = wire();
    between({ type: 'RUN_STARTED', ...S }, ...text('a', 'Mine'));
    post('r1', 'Yours?');
    accept('r1');
    pass(1_999);
    expect(lines()).not.toContain('r1');
    pass(1);
    expect(lines()).toContain('"inferred":true');
    run('r1', ...text('b', 'Yours'), { type: 'RUN_FINISHED', runId: 'r1' });
    between(...text('a', ' and more').slice(1), { type: 'RUN_FINISHED', ...S });
    close();
    expect(lines()).toMatch(/"parentRunId":"own".*\n.*\n.* " and more"/);
  });

  test('writes waiting events beyond the limit in place, without loss', () => {
    const { post, accept, run, between, lines, close } = wire();
    post('r1', 'Go');
    accept('r1');
    between({ type: 'RUN_STARTED', ...S });
    const words = Array.from({ length: 3_000 }, (_, index) => `w${index} `);
    between(...text('a', ...words), { type: 'RUN_FINISHED', ...S });
    run('r1', { type: 'RUN_FINISHED', runId: 'r1' });
    close();
    for (const word of [words[0], words[2_999]]) expect(lines().split(word ?? '')).toHaveLength(2);
  });
});

describe('both streams', () => {
  const events = [
    ...text('a', 'one ', 'two ', 'two '),
    { type: 'CUSTOM', name: 'hook:Stop', value: {} },
    ...text('a', 'three').slice(1),
  ];

  test('may carry the same events in any order', () => {
    for (const lag of [0, 1, 3, 7]) {
      const { post, accept, run, between, lines, told, close, ended } = wire();
      post('r1', 'Go');
      accept('r1');
      const all = [
        { type: 'RUN_STARTED', threadId: 't', runId: 'r1' },
        ...events,
        { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' },
      ];
      for (let index = 0; index < all.length + lag; index += 1) {
        run('r1', ...all.slice(index, index + 1));
        if (index >= lag) between(...all.slice(index - lag, index - lag + 1));
      }
      ended('run', 'r1');
      close();
      expect([lag, saidIn(told).split('one two two three').length, lines().split('hook:Stop').length]).toEqual([
        lag,
        2,
        2,
      ]);
      expect(turnsIn(lines())).toHaveLength(2);
    }
  });

  test.each([
    ['in its turn if both streams carry it', 3, ['RUN_STARTED', 'RUN_FINISHED']],
    [
      'in another turn where the other one begins later',
      0,
      ['RUN_STARTED', 'RUN_ERROR', 'RUN_STARTED', 'RUN_FINISHED'],
    ],
  ])('continues a broken run from the other stream, %s', (_where, before, types) => {
    const { post, accept, run, between, lines, told, close, ended } = wire();
    const all = [{ type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, ...events];
    post('r1', 'Go');
    accept('r1');
    run('r1', ...all.slice(0, 4));
    between(...all.slice(0, before));
    ended('run', 'r1', 'ECONNRESET');
    between(...all.slice(before), { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' });
    close();
    expect(saidIn(told)).toBe('one two two three');
    expect(turnsIn(lines()).map((line) => line.split(' ')[0])).toEqual(types);
  });
});

describe('a posted run that the event stream announces first', () => {
  const began = { type: 'RUN_STARTED', threadId: 't', runId: 'r1' };
  const ended = { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' };
  const all = [began, ...text('a', 'one ', 'two ', 'two '), { type: 'TEXT_MESSAGE_END', messageId: 'a' }, ended];
  const seen = ({ told, lines }: Pick<ReturnType<typeof wire>, 'told' | 'lines'>) => [
    saidIn(told),
    turnsIn(lines()).map((line) => line.split(' ')[0]),
    told[0]?.event.metadata?.interlude,
  ];
  const once = ['one two two ', ['RUN_STARTED', 'RUN_FINISHED'], { turn: 'user', userMessageIds: ['m-r1'] }];

  test('is one user turn wherever the POST response arrives', () => {
    for (let index = 0; index <= all.length; index += 1) {
      for (let lag = 0; lag <= all.length; lag += 3) {
        const stage = wire();
        const { post, accept, run, between, ended: ends, close } = stage;
        post('r1', 'Go');
        between(...all.slice(0, index));
        accept('r1');
        for (let next = 0; next < all.length + lag; next += 1) {
          between(...all.slice(index + next, index + next + 1));
          if (next >= lag) run('r1', ...all.slice(next - lag, next - lag + 1));
        }
        ends('run', 'r1');
        close();
        expect([index, lag, ...seen(stage)]).toEqual([index, lag, ...once]);
      }
    }
  });

  test('is recognized by an event within it', () => {
    const stage = wire();
    stage.post('r1', 'Go');
    stage.between({ ...all[2], runId: 'r1' });
    stage.accept('r1');
    stage.run('r1', ...all.slice(0, 2), { ...all[2], runId: 'r1' }, ...all.slice(3));
    stage.close();
    expect(seen(stage)).toEqual(once);
  });

  test('is complete without a stream from its POST', () => {
    const stage = wire();
    stage.post('r1', 'Go');
    stage.between(...all);
    stage.hear({ stream: 'run', runId: 'r1', status: 504, body: 'too slow' });
    stage.close();
    expect(seen(stage)).toEqual(once);
  });

  test('is recognized by its message under another run id', () => {
    const stage = wire();
    stage.post('r1', 'Go');
    const renamed = all.map((event) => ('runId' in event ? { ...event, runId: 'own-name' } : event));
    stage.between({ ...renamed[0], input: { messages: [{ id: 'm-r1', role: 'user', content: 'Go' }] } });
    stage.between(...renamed.slice(1));
    stage.accept('r1');
    stage.run('r1', ...renamed);
    stage.close();
    expect(seen(stage)).toEqual(once);
  });

  test.each([
    ['late, is one turn', all, 1],
    ['which somebody asked for again, is another turn', [began, ...text('z', 'other'), ended], 2],
  ])('with another run id on the event stream, %s', (_, events, turns) => {
    const stage = wire();
    const input = { messages: [{ id: 'm-r1', role: 'user', content: 'Go' }] };
    stage.post('r1', 'Go');
    stage.accept('r1');
    stage.run('r1', ...all);
    stage.ended('run', 'r1');
    const named = events.map((event) => ('runId' in event ? { ...event, runId: 'own-name' } : event));
    stage.between({ ...named[0], input }, ...named.slice(1));
    stage.close();
    expect(turnsIn(stage.lines()).filter((line) => line.startsWith('RUN_STARTED'))).toHaveLength(turns);
    expect(saidIn(stage.told)).toBe(turns === 1 ? 'one two two ' : 'one two two other');
  });

  test('continues on its own stream if the event stream breaks', () => {
    const stage = wire();
    stage.post('r1', 'Go');
    stage.between(...all.slice(0, 3));
    stage.breaks();
    stage.pass(10_000);
    stage.accept('r1');
    stage.run('r1', ...all);
    stage.pass(60_000);
    stage.close();
    expect(seen(stage)).toEqual(once);
  });

  test('is cancelled by an interrupt', () => {
    const { post, between, hear, lines, close } = wire();
    post('r1', 'Go');
    between(...all.slice(0, 3));
    hear({ stream: 'run', runId: 'r1', ended: 'interrupted', isAsked: true });
    close();
    expect(lines()).toMatch(/RUN_FINISHED .*"cancelled"/);
  });

  test('writes events too long to compare once', () => {
    const { post, accept, run, between, told, close } = wire();
    const long = text('a', 'x'.repeat(20_000));
    post('r1', 'Go');
    between(began, ...long);
    accept('r1');
    run('r1', began, ...long, ended);
    close();
    expect(saidIn(told)).toHaveLength(20_000);
  });
});

test.each([false, true])(
  'a posted run whose server was unreachable goes on in another turn (heard twice: %s)',
  (isTwice) => {
    const { adapter, post, accept, run, between, told, lines, close } = wire();
    const both = (...events: object[]) => {
      for (const event of events) {
        run('r1', event);
        if (isTwice) between(event);
      }
    };
    post('r1', 'Go');
    accept('r1');
    both({ type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, ...text('a', 'one '));
    told.push(...adapter.ended({ reason: 'no answer', goesOn: 'It is tried again.' }, 0));
    both(...text('a', 'two').slice(1), { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'x' });
    both({ type: 'RUN_FINISHED', threadId: 't', runId: 'r1' }, ...text('b', ' behind'));
    expect(turnsIn(lines()).map((line) => line.split(' ')[0])).toEqual([
      ...['RUN_STARTED', 'RUN_ERROR', 'RUN_STARTED', 'RUN_FINISHED'],
    ]);
    expect(saidIn(told)).toBe('one two behind');
    expect(lines().split('TOOL_CALL_START')).toHaveLength(2);
    close();
  },
);

describe('an event stream that breaks during a turn', () => {
  const began = { type: 'RUN_STARTED', ...S };
  const ended = { type: 'RUN_FINISHED', ...S };
  const words = text('a', 'one ', 'two ', 'two ', 'three');
  const ends = (lines: string) => turnsIn(lines).map((line) => line.split(' ')[0]);

  test.each([
    ['continues with it', words.slice(3)],
    ['only restarts it', [began, ...words.slice(3)]],
    ['replays it from its beginning', [began, ...words]],
  ])('resumes the turn when it %s', (_how, rest) => {
    const { between, breaks, opens, pass, told, lines, close } = wire();
    between(began, ...words.slice(0, 3));
    breaks();
    pass(20_000);
    opens();
    between(...rest, ended);
    pass(60_000);
    close();
    expect(saidIn(told)).toBe('one two two three');
    expect(ends(lines())).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
  });

  test('fails the turn after 25 seconds without events', () => {
    const { adapter, between, breaks, opens, pass, lines } = wire();
    between(began, ...words.slice(0, 3));
    breaks();
    opens();
    pass(24_999);
    expect(ends(lines())).toEqual(['RUN_STARTED']);
    pass(1);
    expect(lines()).toMatch(/RUN_ERROR .*"stream_broken"/);
    expect(adapter.dueAt).toBeNull();
  });

  test('continues later events without a run id in another turn', () => {
    const { between, breaks, pass, told, lines, close } = wire();
    between(began, ...words.slice(0, 3));
    breaks();
    pass(30_000);
    between(...words.slice(3), ended);
    close();
    expect(saidIn(told)).toBe('one two two three');
    expect(ends(lines())).toEqual(['RUN_STARTED', 'RUN_ERROR', 'RUN_STARTED', 'RUN_FINISHED']);
    expect(lines()).toContain('"parentRunId":"own"');
  });

  test('fails the turn when another begins', () => {
    const { between, breaks, lines, close } = wire();
    between(began, ...words.slice(0, 3));
    breaks();
    between({ ...began, runId: 'next' }, { ...ended, runId: 'next' });
    close();
    expect(ends(lines())).toEqual(['RUN_STARTED', 'RUN_ERROR', 'RUN_STARTED', 'RUN_FINISHED']);
  });

  test('reports the period without a signal', () => {
    const { breaks, opens, pass, lines, close } = wire();
    pass(Date.UTC(2026, 10, 28, 10, 0, 0));
    breaks();
    pass(65_000);
    opens(Date.UTC(2026, 10, 28, 10, 0, 0));
    close();
    expect(lines()).toContain('No signal from the agent between 2026-11-28 10:00:00 and 10:01:05 UTC');
  });
});

test('drops runs and tasks replayed to the next runner', () => {
  const value = { task_id: 't1', description: 'Poll' };
  const all = [
    { type: 'CUSTOM', name: 'task:started', value },
    { type: 'CUSTOM', name: 'task:completed', value: { ...value, status: 'completed' } },
    { type: 'RUN_STARTED', ...S },
    ...text('a', 'Polled'),
    { type: 'RUN_FINISHED', ...S },
  ];
  const before = wire();
  before.between(...all);
  const after = wire({ ended: before.adapter.endedWork });
  after.between(...all);
  expect(after.told).toEqual([]);
});

test('treats reused run and task ids as new', () => {
  const own = (id: string, words: string) => [
    { type: 'RUN_STARTED', ...S },
    { type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: words } },
    ...text(id, words),
    { type: 'RUN_FINISHED', ...S },
    { type: 'CUSTOM', name: 'task:completed', value: { task_id: 't1', status: 'completed' } },
  ];
  const before = wire();
  before.between(...own('a', 'one'), ...own('a', 'one'), ...own('b', 'two'));
  expect(saidIn(before.told)).toBe('onetwo');
  const after = wire({ ended: before.adapter.endedWork });
  after.between(...own('b', 'two'), ...own('c', 'three'));
  expect(saidIn(after.told)).toBe('three');
  expect(after.lines().match(/task:started|task:completed|RUN_STARTED|RUN_FINISHED/g)).toEqual([
    ...['RUN_STARTED', 'task:started', 'RUN_FINISHED', 'task:completed'],
  ]);
});

describe('interleaved messages', () => {
  const chunk = (messageId: string, delta: string) => ({ type: 'TEXT_MESSAGE_CHUNK', messageId, delta });
  const thought = (messageId: string, delta: string) => ({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta });
  const call = (type: string, more: object = {}) => ({ type: `TOOL_CALL_${type}`, toolCallId: 'c', ...more });
  const ends = (type: string, messageId: string) => ({ type: `${type}_END`, messageId });
  const [left, right] = [text('d1', 'left ', 'hand'), text('d2', 'right ', 'foot')];

  test.each([
    ['two texts', [left[0], right[0], left[1], right[1], left[2], right[2], ends('TEXT_MESSAGE', 'd1')]],
    ['chunks of two texts', [chunk('d1', 'left '), chunk('d2', 'right '), chunk('d1', 'hand'), chunk('d2', 'foot')]],
    [
      'a text and a thought of one name',
      [left[1], thought('d1', 'right '), left[2], ends('TEXT_MESSAGE', 'd1'), thought('d1', 'foot')],
    ],
    [
      'a text, a call and a thought',
      [
        ...left.slice(0, 2),
        call('START', { toolCallName: 'x' }),
        thought('d2', 'right '),
        call('ARGS', { delta: '{}' }),
        ...left.slice(2),
        call('END', { result: 'ok' }),
        thought('d2', 'foot'),
      ],
    ],
  ])('are kept apart and whole: %s', (_what, events) => {
    const { between, told, close } = wire();
    between({ type: 'RUN_STARTED', ...S }, ...events.filter((event) => event !== undefined));
    between({ type: 'RUN_FINISHED', ...S });
    close();
    const said = new Map<string, string>();
    for (const { event } of told) {
      if (event.messageId === undefined || event.delta === undefined) continue;
      const key = `${event.type.slice(0, 4)} ${event.messageId}`;
      said.set(key, (said.get(key) ?? '') + event.delta);
    }
    expect([...said.values()]).toEqual(['left hand', 'right foot']);
  });

  test('are bounded without loss', () => {
    const { between, told, close } = wire();
    const ids = Array.from({ length: 100 }, (_, index) => `d${index}`);
    between({ type: 'RUN_STARTED', ...S }, ...ids.map((id) => chunk(id, id)), ...ids.map((id) => chunk(id, '!')));
    close();
    expect(saidIn(told)).toBe(`${ids.join('')}${'!'.repeat(100)}`);
  });
});

describe('the trigger of a between-run turn', () => {
  const end = (id: string) => ({ type: 'CUSTOM', name: 'task:completed', value: { task_id: id, status: 'completed' } });
  const own = (runId: string) => [
    { type: 'RUN_STARTED', threadId: 't', runId },
    { type: 'RUN_FINISHED', threadId: 't', runId },
  ];
  const triggers = (told: readonly EmittedEvent[]) =>
    told
      .filter(({ event }) => event.type === 'RUN_STARTED')
      .map(({ event }) => event.metadata?.interlude?.trigger?.taskIds);

  test('is the tasks that just ended, each once', () => {
    const { between, told, close } = wire();
    between(end('t1'), end('t2'), ...own('a'), end('t2'), ...own('b'), end('t3'), ...own('c'));
    close();
    expect(triggers(told)).toEqual([['t1', 't2'], [], ['t3']]);
  });

  test('includes tasks of a user turn unless another ended since', () => {
    const { post, accept, run, between, told, close } = wire();
    post('r1', 'Go');
    accept('r1');
    run('r1', end('t1'), { type: 'RUN_FINISHED', runId: 'r1' });
    between(...own('a'));
    post('r2', 'Go');
    accept('r2');
    run('r2', end('t2'), { type: 'RUN_FINISHED', runId: 'r2' });
    between(end('t3'), ...own('b'));
    close();
    expect(triggers(told)).toEqual([undefined, ['t1'], undefined, ['t3']]);
  });

  test('is the server’s, without Interlude’s own claims', () => {
    const { between, told, close } = wire();
    const timer = { kind: 'timer', taskIds: [], reason: 'the build', setAt: 1_000 };
    const metadata = { interlude: { trigger: { ...timer, wokenBy: 'interlude', ofSessionIds: ['other'] } } };
    between({ type: 'RUN_STARTED', threadId: 't', runId: 'a', metadata });
    close();
    expect(told.find(({ event }) => event.type === 'RUN_STARTED')?.event.metadata?.interlude?.trigger).toEqual(timer);
  });
});

test('keeps an output file local only if the server runs on this machine', () => {
  const started = { type: 'CUSTOM', name: 'task:completed', value: { task_id: 't1', output_file: '/etc/passwd' } };
  const valueFrom = (isLocal: boolean) => {
    const { between, told } = wire({ isLocal });
    between(started);
    return told[0]?.event.value;
  };
  expect(valueFrom(true)).toMatchObject({ output_file: '/etc/passwd' });
  expect(valueFrom(false)).not.toHaveProperty('output_file');
});

test('reconciles only the tasks open when the list was requested', () => {
  const { adapter, between, hear, lines, told } = wire();
  const began = (id: string) => ({ type: 'CUSTOM', name: 'task:started', value: { task_id: id, description: id } });
  between(began('t1'), began('t2'));
  told.push(...adapter.read({ dir: 'out', msg: { method: 'GET', path: '/tasks', about: ['t0'] } }, 0));
  between(began('t3'));
  hear({
    answer: 'tasks',
    status: 200,
    body: {
      tasks: [
        { task_id: 't1', status: 'running' },
        { id: 't0', status: 'killed' },
      ],
    },
  });
  const ends = lines()
    .split('\n')
    .filter((line) => line.startsWith('CUSTOM task:completed'));
  expect(ends).toEqual([
    expect.stringContaining('{"task_id":"t0","status":"stopped"}'),
    expect.stringMatching(/"task_id":"t2","status":"lost"/),
  ]);
});

describe('a patch', () => {
  test.each([
    ['adds to a list', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    ['puts into a list', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    ['replaces', { a: { 'b/c': 1 } }, [{ op: 'replace', path: '/a/b~1c', value: 2 }], { a: { 'b/c': 2 } }],
    [
      'removes',
      { a: 1, b: [1, 2] },
      [
        { op: 'remove', path: '/a' },
        { op: 'remove', path: '/b/0' },
      ],
      { b: [2] },
    ],
    [
      'moves and copies',
      { a: 1 },
      [
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'move', from: '/a', path: '/c' },
      ],
      { b: 1, c: 1 },
    ],
    ['replaces all', { a: 1 }, [{ op: 'replace', path: '', value: [] }], []],
    [
      'leaves out what can’t be applied',
      { a: 1 },
      [{ op: 'add', path: '/x/y', value: 1 }, { op: 'what' }, 7, { op: 'add', path: '/a', value: 2 }],
      { a: 2 },
    ],
    ['touches no prototype', {}, [{ op: 'add', path: '/__proto__/bad', value: 1 }], {}],
  ])('%s', (_what, value, patch, after) => {
    expect(applyPatch(value, patch)).toEqual(after);
    expect(({} as { bad?: number }).bad).toBeUndefined();
  });
});
