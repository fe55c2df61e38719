import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import type { CommandOutcome } from '@interlude/runner/host/seen-commands';
import type { Wake } from '@interlude/runner/sources/codex/task-wakes';
import { TaskWakes } from '@interlude/runner/sources/codex/task-wakes';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function wakes(around = new MemorySourceContext(), send?: (wake: Wake) => Promise<CommandOutcome>) {
  const sent: Wake[] = [];
  const take = async (wake: Wake): Promise<CommandOutcome> => {
    sent.push(wake);
    return { state: 'done' };
  };
  const recalled = await TaskWakes.restore(around, 's', send ?? take);
  const tell = (event: object) => recalled.observe([{ sessionId: 's', occurredAt: 1, event } as EmittedEvent], false);
  const custom = (name: string, value: object) => tell({ type: 'CUSTOM', name, value });
  return {
    around,
    sent,
    wakes: recalled,
    starts: (id: string) => custom(CUSTOM.taskStarted, { task_id: id, task_type: 'local_bash', description: id }),
    writes: (id: string, text: string) => custom(CUSTOM.taskOutput, { task_id: id, text }),
    ends: (id: string) => custom(CUSTOM.taskCompleted, { task_id: id, status: 'completed', exit_code: 0 }),
    personSays: () =>
      tell({ type: 'RUN_STARTED', runId: 'r', metadata: { interlude: { turn: 'user', userMessageIds: ['m'] } } }),
    passes: () => vi.advanceTimersByTimeAsync(1_500),
  };
}

test('limits automatic wakes in a row', async () => {
  const stage = await wakes();
  await stage.wakes.setRule('command-ended');
  for (let round = 0; round < 40; round += 1) {
    stage.starts(`c${round}`);
    stage.ends(`c${round}`);
    await stage.passes();
  }
  expect(stage.sent).toHaveLength(25);
  const said = stage.around.events
    .filter(({ name }) => name === CUSTOM.notice)
    .map(({ value }) => fieldsOf(value).text);
  expect(said).toEqual([expect.stringContaining('25 times')]);
  const after = await wakes(new MemorySourceContext(undefined, stage.around));
  after.starts('x');
  after.ends('x');
  await after.passes();
  expect(after.sent, 'also by the next runner').toEqual([]);
  after.personSays();
  after.starts('y');
  after.ends('y');
  await after.passes();
  expect(after.sent).toHaveLength(1);
});

test('wakes for a long command despite many others', async () => {
  const stage = await wakes();
  await stage.wakes.setRule('command-ended');
  stage.starts('build');
  stage.writes('build', 'begun\n');
  for (let index = 0; index < 60; index += 1) {
    stage.starts(`c${index}`);
    stage.ends(`c${index}`);
  }
  for (let index = 0; index < 5; index += 1) await stage.passes();
  expect(stage.sent.flatMap(({ taskIds }) => taskIds)).toHaveLength(60);
  stage.ends('build');
  await stage.passes();
  expect(stage.sent.at(-1)?.taskIds).toContain('build');
  expect(JSON.stringify(stage.sent.at(-1)?.context)).toContain('begun');
});

test('includes output written after a restart of the runner', async () => {
  const before = await wakes();
  await before.wakes.setRule('command-ended');
  before.starts('c');
  const after = await wakes(new MemorySourceContext(undefined, before.around));
  after.writes('c', 'no luck\n');
  after.ends('c');
  await after.passes();
  expect(JSON.stringify(after.sent[0]?.context)).toContain('no luck');
});

test('fails a pending wake when the runner ends', async () => {
  const around = new MemorySourceContext();
  const stage = await wakes(around, () => Promise.reject(new Error('the runner has ended')));
  await stage.wakes.setRule('command-ended');
  stage.starts('c');
  stage.ends('c');
  await stage.passes();
  expect(around.logged).toEqual(['warn could not wake the agent: the runner has ended']);
  expect([...around.stored.values()].join('')).toContain('"isDue":true');
});

test('resends the same wake after a kill', async () => {
  const around = new MemorySourceContext();
  const lost: Wake[] = [];
  const before = await wakes(around, (wake) => {
    lost.push(wake);
    around.deafen();
    return new Promise(() => undefined);
  });
  await before.wakes.setRule('command-ended');
  before.starts('a');
  before.starts('b');
  before.ends('a');
  await before.passes();
  const after = await wakes(new MemorySourceContext(undefined, around));
  after.ends('b');
  await after.passes();
  await after.passes();
  expect(after.sent.map(({ taskIds }) => taskIds)).toEqual([['a'], ['b']]);
  expect(after.sent[0]?.clientId).toBe(lost[0]?.clientId);
});
