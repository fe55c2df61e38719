import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import type { TaskOutput } from '@interlude/protocol/read-models';
import { appendOutputs } from '@interlude/protocol/task-output';
import { TaskOutputs } from '@interlude/runner/host/task-outputs';
import { Redactor } from '@interlude/runner/logger/redactor';
import { findInOutput, outputRows } from '@/components/tasks/output-rows';
import { note, report } from './report';

/** Cost of following tasks with much output, and of showing it. */
const TASKS = 20;
const RUN_MS = 10_000;
const STEP_MS = 100;
const line = (at: number) =>
  `\u001b[32m✓\u001b[0m cart ${at} › keeps the item over a reload \u001b[2m(${at % 40} ms)\u001b[0m\n`;
const MUCH = Array.from({ length: 800 }, (_, index) => line(index)).join('');

const folder = mkdtempSync(join(tmpdir(), 'interlude-bench-'));
const file = (task: number) => join(folder, `t${task}.output`);
const told: { task: string; at: number; bytes: number }[] = [];
const outputs = new TaskOutputs({
  store: async (_sessionId, events) => {
    for (const { event } of events) {
      const { task_id, text } = event.value as { task_id: string; text: string };
      told.push({ task: task_id, at: performance.now(), bytes: text.length });
    }
  },
  backlog: async () => ({ records: 0, oldestAgeMs: 0 }),
  redactor: new Redactor(),
  log: () => {},
});
const custom = (name: string, value: object): TimedEvent => ({ occurredAt: 0, event: { type: 'CUSTOM', name, value } });
for (let task = 0; task < TASKS; task += 1) {
  outputs.observe('s', [custom(CUSTOM.taskUpdated, { task_id: `t${task}`, output_file: file(task) })]);
}
let written = 0;
const cpuBefore = process.cpuUsage();
const began = performance.now();
while (performance.now() - began < RUN_MS) {
  for (let task = 0; task < TASKS; task += 1) appendFileSync(file(task), MUCH);
  written += TASKS * MUCH.length;
  await pause(STEP_MS);
}
const seconds = (performance.now() - began) / 1_000;
const { user, system } = process.cpuUsage(cpuBefore);
const live = told.length;
await outputs.close();
told.splice(live);
const perTask = new Map<string, number>();
for (const { task } of told) perTask.set(task, (perTask.get(task) ?? 0) + 1);
const bytes = told.reduce((sum, one) => sum + one.bytes, 0);
note(`task output: written by ${TASKS} tasks`, written / seconds / 1e6, 'MB/s');
report('task output: sent in total', bytes / seconds / 1024, 'KiB/s', { atMost: 160 });
report('task output: records of the busiest task', Math.max(...perTask.values()) / seconds, '/s', { atMost: 3 });
report('task output: runner CPU, including writing', (user + system) / 1e4 / seconds, '% of a core', {
  atMost: 25,
});
rmSync(folder, { recursive: true });

let text = '';
for (let index = 0; text.length < MAX_TASK_OUTPUT_BYTES; index += 1) text += line(index);
const full = (): TaskOutput => ({
  parts: [{ from: 0, to: text.length, text }],
  redacted: 0,
  lastAt: 0,
  hasEnded: false,
  error: null,
});
const piece = { type: 'CUSTOM', name: CUSTOM.taskOutput, value: { task_id: 't', text: line(1) } };
report(
  'task output: append a piece to 256 KiB',
  fastest(() => appendOutputs(full(), [[piece, 0]])),
  'ms',
  { atMost: 8 },
);
report(
  'task output: lay out 256 KiB in lines',
  fastest(() => outputRows(full())),
  'ms',
  { atMost: 16 },
);
report(
  'task output: search 256 KiB for the first time',
  fastest(() => findInOutput(outputRows(full()), 'reload')),
  'ms',
  {
    atMost: 50,
  },
);

/** The fastest of many runs, to exclude other load. */
function fastest(work: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 30; round += 1) {
    const startedAt = performance.now();
    work();
    best = Math.min(best, performance.now() - startedAt);
  }
  return best;
}
