'use client';

import { foldTaskItems } from '@interlude/protocol/projections/transcript';
import type { Task, TaskDetail } from '@interlude/protocol/read-models';
import { fetchJson } from '@/components/live/fetch-json';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { entriesOf } from '@/components/live/row-frame';
import { useFolded } from '@/components/live/use-folded';

/** A subagent's items, kept current while they are shown. */
export function useTaskDetail(task: Task) {
  const path = pathOf(task, '');
  return useFolded(
    ['task', path],
    `session:${task.sessionId}`,
    () =>
      new FoldedSnapshot<TaskDetail>({
        read: (signal) => fetchJson(path, signal),
        fold: (detail, frames) => ({ ...detail, items: foldTaskItems(detail.items, task.id, entriesOf(frames)) }),
      }),
  );
}

/** API path of a task run. */
export function pathOf({ id, runId, sessionId }: Task, what: '' | '/output'): string {
  const run = runId === null ? '' : `?runId=${encodeURIComponent(runId)}`;
  return `/sessions/${encodeURIComponent(sessionId)}/tasks/${encodeURIComponent(id)}${what}${run}`;
}
