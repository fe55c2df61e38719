import { appendFile, mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskOutputValue, TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { NOTHING_OPEN, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { TaskOutput } from '@interlude/protocol/read-models';
import { appendOutputs, outputSize } from '@interlude/protocol/task-output';
import { TaskOutputs } from '@interlude/runner/host/task-outputs';
import { Redactor } from '@interlude/runner/logger/redactor';
import type { Cursor } from '@interlude/runner/outbox/statements';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });
const custom = (name: string, value: object): TimedEvent => ({ occurredAt: 1, event: { type: 'CUSTOM', name, value } });

/** A runner's outbox, its tasks, and what is told of what they write. */
async function stage(before?: { folder: string; cursors: Map<string, string>; open?: OpenWork }) {
  const folder = before?.folder ?? (await tempDir());
  const cursors = before?.cursors ?? new Map<string, string>();
  const told: TaskOutputValue[] = [];
  const log: string[] = [];
  let waiting = 0;
  let now = 1_000_000;
  const outputs = new TaskOutputs({
    store: async (_sessionId, events, stored) => {
      for (const { event } of events) told.push(event.value as TaskOutputValue);
      for (const { name, value } of stored as Cursor[]) {
        if (value === null) cursors.delete(name);
        else cursors.set(name, value);
      }
    },
    backlog: async () => ({ records: waiting, oldestAgeMs: waiting > 50 ? 5_000 : 0 }),
    redactor: new Redactor(),
    log: (message) => log.push(message),
    everyMs: 5,
    now: () => now,
  });
  await outputs.recall({ cursors: async () => cursors }, new Map(before?.open ? [['s', before.open]] : []));
  onTestFinished(() => outputs.close());
  const file = (task: string) => join(folder, `${task}.output`);
  return {
    ...{ folder, cursors, told, log, outputs, file },
    write: (task: string, text: string) => appendFile(file(task), text),
    starts: (task: string) =>
      outputs.observe('s', [
        custom(CUSTOM.taskStarted, { task_id: task, task_type: 'local_bash' }),
        custom(CUSTOM.taskUpdated, { task_id: task, output_file: file(task) }),
      ]),
    ends: (task: string) =>
      outputs.observe('s', [custom(CUSTOM.taskCompleted, { task_id: task, status: 'completed' })]),
    later: (ms: number) => {
      now += ms;
    },
    waits: (records: number) => {
      waiting = records;
    },
    /** What the server has of it. */
    kept: (task: string): TaskOutput | null =>
      told
        .filter(({ task_id }) => task_id === task)
        .reduce<TaskOutput | null>(
          (output, value) => appendOutputs(output, [[{ type: 'CUSTOM', name: CUSTOM.taskOutput, value }, 1]]),
          null,
        ),
  };
}
type Stage = Awaited<ReturnType<typeof stage>>;
const text = (on: Stage, task: string) =>
  on
    .kept(task)
    ?.parts.map((part) => part.text)
    .join('') ?? '';

describe('what a task writes', () => {
  test('is told while it runs, and its rest behind its end', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'one\n');
    await settled(() => text(on, 't')).toBe('one\n');
    await on.write('t', 'two\nunfinished');
    await settled(() => text(on, 't')).toBe('one\ntwo\n');
    on.ends('t');
    await settled(() => on.kept('t')).toMatchObject({ hasEnded: true, error: null });
    expect(text(on, 't')).toBe('one\ntwo\nunfinished');
    expect(on.cursors.size).toBe(0);
  });

  test('is told where its line is not finished, once nothing follows: it may be a question', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'Go on? [y/N] ');
    on.later(1_500);
    await settled(() => text(on, 't')).toBe('Go on? [y/N] ');
  });

  test('waits in its file while events wait to be sent, and then is told in one', async () => {
    const on = await stage();
    on.waits(200);
    on.starts('t');
    on.starts('other');
    await on.write('other', 'said\n');
    for (let line = 0; line < 20; line++) await on.write('t', `${line}\n`);
    on.ends('other');
    // what has ended waits less long
    await settled(() => text(on, 'other')).toBe('said\n');
    expect(on.told.filter(({ task_id }) => task_id === 't')).toEqual([]);
    on.waits(0);
    await settled(() => on.told.filter(({ task_id }) => task_id === 't')).toHaveLength(1);
    expect(text(on, 't')).toMatch(/^0\n1\n.*19\n$/s);
  });

  test('is told at most in part of one that writes without end, and others have their turns', async () => {
    const on = await stage();
    const flood = `${'x'.repeat(99)}\n`.repeat(2_000);
    for (const task of ['a', 'b', 'c']) {
      on.starts(task);
      await on.write(task, flood);
    }
    on.starts('quiet');
    await on.write('quiet', 'here\n');
    await settled(() => text(on, 'quiet')).toBe('here\n');
    await settled(() => ['a', 'b', 'c'].every((task) => text(on, task).length > 10_000)).toBe(true);
    on.later(3_000);
    await settled(() => text(on, 'a').length).toBe(flood.length);
    expect(on.kept('a')?.parts).toHaveLength(1);
  });

  test('ends with its session', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'last words');
    on.outputs.observe('s', [custom(CUSTOM.sessionEnded, { reason: 'exited' })]);
    await settled(() => on.kept('t')).toMatchObject({ hasEnded: true });
    expect(text(on, 't')).toBe('last words');
  });

  test('is looked for only where its source says so while it runs: an end may be anybody’s word', async () => {
    const on = await stage();
    await on.write('t', 'private\n');
    on.outputs.observe('s', [
      custom(CUSTOM.taskCompleted, { task_id: 't', status: 'failed', output_file: on.file('t') }),
    ]);
    on.outputs.observe('s', [custom(CUSTOM.taskUpdated, { task_id: 'u', output_file: 'package.json' })]);
    on.starts('other');
    await on.write('other', 'said\n');
    await settled(() => text(on, 'other')).toBe('said\n');
    expect(on.told.map(({ task_id }) => task_id)).toEqual(['other']);
  });

  test('is that of each run where an id is used again before the first was read to its end', async () => {
    const on = await stage();
    on.starts('t');
    on.waits(5_000);
    on.ends('t');
    on.outputs.observe('s', [custom(CUSTOM.taskUpdated, { task_id: 't', output_file: on.file('u') })]);
    await on.write('t', 'first\n');
    await on.write('u', 'second\n');
    on.waits(0);
    await settled(() => on.told.map((value) => value.text)).toEqual(['first\n', '', 'second\n']);
  });

  test('has its end where its run was named only later', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'one\n');
    await settled(() => text(on, 't')).toBe('one\n');
    on.outputs.observe('s', [custom(CUSTOM.taskCompleted, { task_id: 't', run_id: 'r9', status: 'completed' })]);
    await settled(() => on.kept('t')).toMatchObject({ hasEnded: true });
  });

  test('that is gone is told as such, if it was told of before', async () => {
    const on = await stage();
    on.starts('t');
    on.starts('never');
    await on.write('t', 'one\n');
    await settled(() => text(on, 't')).toBe('one\n');
    await rm(on.file('t'));
    on.ends('t');
    on.ends('never');
    await settled(() => on.kept('t')).toMatchObject({ hasEnded: true, error: expect.stringContaining('ENOENT') });
    await settled(() => on.cursors.size).toBe(0);
    expect(on.kept('never')).toMatchObject({ hasEnded: true, error: expect.stringContaining('ENOENT') });
  });

  test('is said to have been written when it was', async () => {
    const on = await stage();
    await on.write('t', 'one\n');
    const at = new Date(2_000_000_000_000);
    // Before anybody looks: what was told with the time of another look is not told again.
    await utimes(on.file('t'), at, at);
    on.starts('t');
    await settled(() => on.kept('t')?.lastAt).toBe(at.getTime());
  });

  test('is nothing where a link or a folder stands in its place', async () => {
    const on = await stage();
    await writeFile(join(on.folder, 'secret'), 'root\n');
    await symlink(join(on.folder, 'secret'), on.file('linked'));
    await mkdir(on.file('folder'));
    for (const task of ['linked', 'folder']) on.starts(task);
    await settled(() => on.cursors.size).toBe(0);
    // nor is it once they have ended
    for (const task of ['linked', 'folder']) on.ends(task);
    expect(on.told).toEqual([]);
  });
});

test('a file in whose place a link comes to stand is told to be no longer readable', async () => {
  const on = await stage();
  on.starts('t');
  await on.write('t', 'one\n');
  await settled(() => text(on, 't')).toBe('one\n');
  await rm(on.file('t'));
  await writeFile(join(on.folder, 'secret'), 'root\n');
  await symlink(join(on.folder, 'secret'), on.file('t'));
  await settled(() => on.kept('t')).toMatchObject({ hasEnded: true, error: expect.stringContaining('ELOOP') });
  expect(text(on, 't')).toBe('one\n');
});

describe('a runner that was killed', () => {
  const open: OpenWork = { ...NOTHING_OPEN, tasks: [{ id: 't', runId: null, description: 'T' }] };

  test('goes on where it was, word for word, in a task that still runs', async () => {
    const first = await stage();
    first.starts('t');
    await first.write('t', 'one\n');
    await settled(() => text(first, 't')).toBe('one\n');
    await first.write('t', 'two\n');
    const cursors = new Map(first.cursors);
    const second = await stage({ folder: first.folder, cursors, open });
    await settled(() => second.told).toMatchObject([{ task_id: 't', from: 4, to: 8, text: 'two\n' }]);
    second.ends('t');
    await settled(() => second.kept('t')).toMatchObject({ hasEnded: true });
  });

  test('tells the rest of a task that has ended meanwhile', async () => {
    const first = await stage();
    first.starts('t');
    await first.write('t', 'one\n');
    await settled(() => text(first, 't')).toBe('one\n');
    await first.write('t', 'two\n');
    const second = await stage({ folder: first.folder, cursors: new Map(first.cursors) });
    await settled(() => second.told).toMatchObject([{ from: 4, text: 'two\n' }, { ended: true }]);
    expect(second.cursors.size).toBe(0);
  });

  test('as it ends, tells the rest of what has ended, though much waits, and leaves what goes on', async () => {
    const on = await stage();
    on.waits(5_000);
    on.starts('done');
    on.starts('on');
    await on.write('done', 'said');
    await on.write('on', 'said');
    on.ends('done');
    await on.outputs.close();
    expect(text(on, 'done')).toBe('said');
    expect(on.kept('done')).toMatchObject({ hasEnded: true });
    expect(on.kept('on')).toBeNull();
    expect([...on.cursors.keys()]).toEqual([expect.stringContaining('"on"')]);
    expect(outputSize(on.kept('done') as TaskOutput)).toBe(4);
  });
});
