import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

const heard = (at: number, msg: unknown): RecordedLine => ({ at, fields: { dir: 'in', at, msg } });
const count = (text: string, part: string) => text.split(part).length - 1;

describe.each(recordingsOf('agui'))('the recording %s', (name) => {
  const lines = recordedLines('agui', name);

  test('matches its golden file', async () => {
    const told = eventLines(playRecorded('agui', lines));
    await expect(told).toMatchFileSnapshot(`../../fixtures/golden/agui/${name}.txt`);
  });

  test('is recognized by its lines', () => {
    const [first] = lines.filter((line) => RECORDED_KINDS.agui?.recognizes(line));
    expect(first).toBeDefined();
    const others = Object.entries(RECORDED_KINDS).filter(([kind]) => kind !== 'agui');
    for (const [kind, { recognizes }] of others) expect([kind, lines.some(recognizes)]).toEqual([kind, false]);
  });

  test('is well formed when cut at any frame', () => {
    for (let until = 0; until <= lines.length; until += 1)
      expectValidEvents(playRecorded('agui', lines.slice(0, until)));
  });

  test('is well formed with every frame doubled', () => {
    expectValidEvents(
      playRecorded(
        'agui',
        lines.flatMap((line) => [line, line]),
      ),
    );
  });

  test('is well formed with garbage after each frame', () => {
    const garbage = [
      null,
      7,
      'x',
      [],
      {},
      { stream: 'run' },
      { stream: 'events', event: null },
      { stream: 'run', event: [] },
    ];
    const nonsense = [
      'TEXT_MESSAGE_CONTENT',
      'TOOL_CALL_END',
      'RUN_STARTED',
      'CUSTOM',
      'ACTIVITY_DELTA',
      '__proto__',
    ].map((type) => ({
      stream: 'run',
      event: { type, messageId: 5, toolCallId: {}, value: [], patch: 'x', name: 'request:opened', delta: null },
    }));
    const told = playRecorded(
      'agui',
      lines.flatMap((line, index) => [line, heard(line.at, [...garbage, ...nonsense][index % 14])]),
    );
    expectValidEvents(told);
  });
});

describe('the golden recordings', () => {
  const golden = (name: string) => eventLines(playRecorded('agui', recordedLines('agui', name)));

  test('put each reply into the turn that caused it, once', () => {
    const text = golden('ambient-background');
    expect(count(text, 'The poll ended with code 3.')).toBe(1);
    expect(text).toMatch(
      /RUN_STARTED.*synthetic-1.*"turn":"between-run","trigger":\{"kind":"task","taskIds":\["t1"\]\}/,
    );
    expect(count(text, 'task:completed {"task_id":"t1"')).toBe(1);
    expect(text).toContain('task:completed {"task_id":"t9"');
  });

  test('write events of both streams once', () => {
    const text = golden('ambient-both-streams');
    for (const said of [
      'la la ',
      'Said.',
      'And by myself.',
      'task:started {',
      'task:completed {',
      'hook:Notification',
    ]) {
      expect([said, count(text, said)]).toEqual([said, 1]);
    }
  });

  test('read Mastra activities as tasks and forward the others', () => {
    const text = golden('mastra-tasks');
    expect(text).toContain('task:started {"status":"running","task_id":"task-1","description":"research"');
    expect(text).toContain('task:completed {"task_id":"task-1"');
    expect(text).toContain('mastra-memory');
    expect(text).toMatch(/follow-1.*"trigger":\{"kind":"task","taskIds":\["task-1"\]\}/);
  });
});

test('bounds frames of 10 MB', () => {
  const big = 'x'.repeat(10 * 1024 * 1024);
  const run = (event: object) => heard(1, { stream: 'run', runId: 'r1', event });
  const told = playRecorded('agui', [
    {
      at: 0,
      fields: {
        dir: 'out',
        at: 0,
        msg: {
          method: 'POST',
          body: { threadId: 't', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: big }] },
        },
      },
    },
    heard(0, { stream: 'run', runId: 'r1', status: 200 }),
    run({ type: 'RUN_STARTED', threadId: 't', runId: 'r1', input: { messages: [big] } }),
    run({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a', delta: big }),
    run({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: big }),
    run({ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: big }),
    run({ type: 'TOOL_CALL_END', toolCallId: 'c', result: big }),
    run({
      type: 'MESSAGES_SNAPSHOT',
      messages: [
        { id: 'a', role: 'assistant', content: big },
        { id: 'b', role: 'user', content: 'b' },
      ],
    }),
    run({ type: 'CUSTOM', name: big, value: big }),
    run({ type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: big } }),
    run({
      type: 'ACTIVITY_SNAPSHOT',
      messageId: big,
      activityType: 'mastra-background-task',
      content: { taskId: big },
    }),
    run({
      type: 'RUN_FINISHED',
      result: { big },
      outcome: { type: 'interrupt', interrupts: [{ id: 'i', message: big }] },
    }),
    heard(2, { stream: 'run', runId: 'r1', text: big }),
  ]);
  expectValidEvents(told);
  expect(told.filter(({ event }) => event.type === 'MESSAGES_SNAPSHOT')).toHaveLength(2);
});

test('reports an event nested too deeply as oversized', () => {
  let deep: unknown = {};
  for (let level = 0; level < 5_000; level += 1) deep = { deep };
  const told = playRecorded('agui', [
    heard(0, { stream: 'events', event: { type: 'STATE_SNAPSHOT', snapshot: deep } }),
  ]);
  expect(told[0]?.event).toMatchObject({ name: 'agui:too-much' });
});

test('drops arguments and activities nested too deeply', () => {
  const run = (event: object) => heard(1, { stream: 'events', event });
  const own = { threadId: 't', runId: 'r1' };
  const deeper = { op: 'move', from: '', path: '/deep' };
  const told = playRecorded('agui', [
    run({ type: 'RUN_STARTED', ...own }),
    run({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'AskUserQuestion' }),
    run({ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '['.repeat(20_000) + ']'.repeat(20_000) }),
    run({
      type: 'ACTIVITY_SNAPSHOT',
      messageId: 'a',
      activityType: 'mastra-background-task',
      content: { status: 'started' },
    }),
    ...Array.from({ length: 200 }, () =>
      run({
        type: 'ACTIVITY_DELTA',
        messageId: 'a',
        activityType: 'mastra-background-task',
        patch: [
          { op: 'add', path: '/copy', value: {} },
          { ...deeper, op: 'copy', path: '/copy/of' },
          { op: 'move', from: '/copy', path: '' },
        ],
      }),
    ),
    run({ type: 'RUN_FINISHED', ...own }),
  ]);
  expectValidEvents(told);
  const asked = told.find(({ event }) => event.name === 'request:opened')?.event.value as { input: unknown };
  expect(typeof asked.input).toBe('string');
});

test('prefixes an agent’s event with a reserved name', () => {
  const told = playRecorded('agui', [
    heard(0, { stream: 'events', event: { type: 'CUSTOM', name: 'session:ended', value: {} } }),
    heard(0, {
      stream: 'events',
      event: { type: 'STATE_DELTA', delta: [], metadata: { interlude: { derived: {} }, mine: 1 } },
    }),
  ]);
  expect(told.slice(0, 2).map(({ event }) => event)).toEqual([
    { type: 'CUSTOM', name: 'agui:session:ended', value: {} },
    { type: 'STATE_DELTA', delta: [], metadata: { mine: 1 } },
  ]);
});
