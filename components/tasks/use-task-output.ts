'use client';

import { foldTaskOutput } from '@interlude/protocol/projections/task-output';
import type { Task, TaskOutputDetail } from '@interlude/protocol/read-models';
import { fetchJson } from '@/components/live/fetch-json';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { entriesOf } from '@/components/live/row-frame';
import { useFolded } from '@/components/live/use-folded';
import { pathOf } from './use-tasks';

/** What a run of a task has written, kept current while it is looked at. */
export function useTaskOutput(task: Task) {
  const path = `${pathOf({ ...task, runId: null }, '/output')}?position=${task.position}`;
  return useFolded(
    ['task-output', path],
    `session:${task.sessionId}`,
    () =>
      new FoldedSnapshot<TaskOutputDetail>({
        read: (signal) => fetchJson(path, signal),
        fold: (detail, frames) => foldTaskOutput(detail, entriesOf(frames)),
      }),
  );
}
