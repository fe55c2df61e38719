import { describe, expect, test } from 'vitest';
import { AgUiAdapter } from '@/lib/adapters/agui/agui-adapter';
import { applyPatch } from '@/lib/adapters/agui/json-patch';
import type { ToldEvent } from '@/lib/adapters/wire';
import { expectSound, toldInLines } from '../../support/recorded';

const S = { threadId: 't', runId: 'own' };

/** An adapter that is fed frame by frame; time passes as the test says. */
function wire(options: { isHere?: boolean } = {}) {
  let runs = 0;
  let now = 0;
  const told: ToldEvent[] = [];
  const adapter = new AgUiAdapter({ sessionOf: () => 's', newRunId: () => `made-${++runs}`, ...options });
  const hear = (msg: object) => void told.push(...adapter.read({ dir: 'in', msg }, now));
  return {
    adapter,
    told,
    lines: () => toldInLines(told),
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
    hear,
    pass(ms: number) {
      now += ms;
      if (adapter.dueAt !== null && adapter.dueAt <= now) told.push(...adapter.elapsed(now));
    },
    close() {
      told.push(...adapter.ended({ reason: 'over' }, now));
      expectSound(told);
    },
  };
}

const text = (id: string, ...deltas: string[]) => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
  ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta })),
];
const saidIn = (told: readonly ToldEvent[]) => told.map(({ event }) => event.delta ?? '').join('');
const turnsIn = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => /^RUN_/.test(line))
    .map((line) => line.slice(0, 36));

describe('one turn at a time', () => {
  test('a person’s run waits for the end of the agent’s own turn', () => {
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

  test('but not for ever, and what comes of that turn later has one of its own', () => {
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

  test('what waits too long to be kept is told where it is, and nothing is lost', () => {
    const { post, accept, run, between, lines, close } = wire();
    post('r1', 'Go');
    accept('r1');
    between({ type: 'RUN_STARTED', ...S });
    const words = Array.from({ length: 3_000 }, (_, at) => `w${at} `);
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

  test('may say the same, in whatever order they are heard', () => {
    for (const lag of [0, 1, 3, 7]) {
      const { post, accept, run, between, lines, told, close, ended } = wire();
      post('r1', 'Go');
      accept('r1');
      const all = [
        { type: 'RUN_STARTED', threadId: 't', runId: 'r1' },
        ...events,
        { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' },
      ];
      for (let at = 0; at < all.length + lag; at += 1) {
        run('r1', ...all.slice(at, at + 1));
        if (at >= lag) between(...all.slice(at - lag, at - lag + 1));
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

  test('a run that breaks goes on, in another turn, with what only the other one says', () => {
    const { post, accept, run, between, lines, told, close, ended } = wire();
    post('r1', 'Go');
    accept('r1');
    run('r1', ...events.slice(0, 3));
    between({ type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, ...events.slice(0, 3));
    ended('run', 'r1', 'ECONNRESET');
    between(...events.slice(3), { type: 'RUN_FINISHED', threadId: 't', runId: 'r1' });
    close();
    expect(saidIn(told)).toBe('one two two three');
    expect(turnsIn(lines()).map((line) => line.split(' ')[0])).toEqual([
      'RUN_STARTED',
      'RUN_ERROR',
      'RUN_STARTED',
      'RUN_FINISHED',
    ]);
  });
});

describe('what wakes the agent', () => {
  const end = (id: string) => ({ type: 'CUSTOM', name: 'task:completed', value: { task_id: id, status: 'completed' } });
  const own = (runId: string) => [
    { type: 'RUN_STARTED', threadId: 't', runId },
    { type: 'RUN_FINISHED', threadId: 't', runId },
  ];
  const triggers = (told: readonly ToldEvent[]) =>
    told
      .filter(({ event }) => event.type === 'RUN_STARTED')
      .map(({ event }) => event.metadata?.interlude?.trigger?.taskIds);

  test('is the tasks that ended just before, each once', () => {
    const { between, told, close } = wire();
    between(end('t1'), end('t2'), ...own('a'), end('t2'), ...own('b'), end('t3'), ...own('c'));
    close();
    expect(triggers(told)).toEqual([['t1', 't2'], [], ['t3']]);
  });

  test('may have ended in a person’s turn, unless another ended since', () => {
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
});

test('a file that a task names is looked for only where the server runs on this machine', () => {
  const started = { type: 'CUSTOM', name: 'task:completed', value: { task_id: 't1', output_file: '/etc/passwd' } };
  const valueFrom = (isHere: boolean) => {
    const { between, told } = wire({ isHere });
    between(started);
    return told[0]?.event.value;
  };
  expect(valueFrom(true)).toMatchObject({ output_file: '/etc/passwd' });
  expect(valueFrom(false)).not.toHaveProperty('output_file');
});

test('a list of tasks settles those that were open when it was asked for, and no others', () => {
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
