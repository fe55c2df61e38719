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

/** A runner's outbox, its tasks and their emitted output. */
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
  await outputs.restore({ cursors: async () => cursors }, new Map(before?.open ? [['s', before.open]] : []));
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
    /** The output stored by the server. */
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

describe('the output of a task', () => {
  test('is emitted while it runs, and the rest after its end', async () => {
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

  test('includes an unfinished line after a silence', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'Go on? [y/N] ');
    on.later(1_500);
    await settled(() => text(on, 't')).toBe('Go on? [y/N] ');
  });

  test('stays in its file while events are unsent', async () => {
    const on = await stage();
    on.waits(200);
    on.starts('t');
    on.starts('other');
    await on.write('other', 'said\n');
    for (let line = 0; line < 20; line++) await on.write('t', `${line}\n`);
    on.ends('other');
    // an ended task waits less
    await settled(() => text(on, 'other')).toBe('said\n');
    expect(on.told.filter(({ task_id }) => task_id === 't')).toEqual([]);
    on.waits(0);
    await settled(() => on.told.filter(({ task_id }) => task_id === 't')).toHaveLength(1);
    expect(text(on, 't')).toMatch(/^0\n1\n.*19\n$/s);
  });

  test('is limited for an endless writer, so that others get their share', async () => {
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

  test('is read only from the path named while it runs', async () => {
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

  test('is separate for each run of a reused id', async () => {
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

  test('ends when its run is named later', async () => {
    const on = await stage();
    on.starts('t');
    await on.write('t', 'one\n');
    await settled(() => text(on, 't')).toBe('one\n');
    on.outputs.observe('s', [custom(CUSTOM.taskCompleted, { task_id: 't', run_id: 'r9', status: 'completed' })]);
    await settled(() => on.kept('t')).toMatchObject({ hasEnded: true });
  });

  test('is reported as missing if it was emitted before', async () => {
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

  test('has the time of its writing', async () => {
    const on = await stage();
    await on.write('t', 'one\n');
    const at = new Date(2_000_000_000_000);
    // Set before the first check: an emitted piece is not repeated for a new time.
    await utimes(on.file('t'), at, at);
    on.starts('t');
    await settled(() => on.kept('t')?.lastAt).toBe(at.getTime());
  });

  test('is empty for a link or a folder', async () => {
    const on = await stage();
    await writeFile(join(on.folder, 'secret'), 'root\n');
    await symlink(join(on.folder, 'secret'), on.file('linked'));
    await mkdir(on.file('folder'));
    for (const task of ['linked', 'folder']) on.starts(task);
    await settled(() => on.cursors.size).toBe(0);
    // nor after their end
    for (const task of ['linked', 'folder']) on.ends(task);
    expect(on.told).toEqual([]);
  });
});

test('is reported as unreadable when replaced by a link', async () => {
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

  test('continues exactly where it was in a running task', async () => {
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

  test('emits the rest of a task that ended meanwhile', async () => {
    const first = await stage();
    first.starts('t');
    await first.write('t', 'one\n');
    await settled(() => text(first, 't')).toBe('one\n');
    await first.write('t', 'two\n');
    const second = await stage({ folder: first.folder, cursors: new Map(first.cursors) });
    await settled(() => second.told).toMatchObject([{ from: 4, text: 'two\n' }, { ended: true }]);
    expect(second.cursors.size).toBe(0);
  });

  test('emits the rest of ended tasks on close, and leaves running ones', async () => {
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
