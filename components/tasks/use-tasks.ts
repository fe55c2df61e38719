'use client';

import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { useLiveQuery } from '@/components/live/use-live-query';
import { foldTaskItems } from '@/lib/projections/transcript';
import type { Task, TaskDetail, TaskList } from '@/lib/protocol/read-models';

/** Tasks of a session, kept current. @param first all of them, or the part that came with the page */
export function useTasks(sessionId: string, first: { list: TaskList; whole: boolean }) {
  return useLiveQuery<TaskList>({
    key: ['tasks', sessionId],
    topic: 'fleet',
    ...(first.whole ? { initial: first.list } : { preview: first.list }),
    load: (signal) => fetchJson(`/sessions/${encodeURIComponent(sessionId)}/tasks`, signal),
    fold: (list, frames) => ({
      ...list,
      position: (frames.at(-1) as RowFrame).id,
      tasks: foldTaskRows(
        list.tasks,
        frames.flatMap((frame) => (frame.event === 'task' && frame.data.sessionId === sessionId ? [frame.data] : [])),
      ),
    }),
  });
}

/** A task's identity within its session is where its first event stands: agents re-use ids. */
export function foldTaskRows(tasks: Task[], rows: Task[]): Task[] {
  if (rows.length === 0) return tasks;
  const changed = new Map(rows.map((row) => [row.position, row]));
  const next = tasks.map((task) => {
    const row = changed.get(task.position);
    changed.delete(task.position);
    return row ?? task;
  });
  return [...next, ...changed.values()];
}

/** What a task's subagent said and did, kept current while it is looked at. */
export function useTaskDetail(task: Task, enabled: boolean) {
  return useLiveQuery<TaskDetail>({
    key: ['task', task.sessionId, task.id, task.runId],
    topic: `session:${task.sessionId}`,
    enabled,
    load: (signal) => {
      const run = task.runId === null ? '' : `?runId=${encodeURIComponent(task.runId)}`;
      const path = `/sessions/${encodeURIComponent(task.sessionId)}/tasks/${encodeURIComponent(task.id)}${run}`;
      return fetchJson(path, signal);
    },
    fold: (detail, frames) => ({
      ...detail,
      position: (frames.at(-1) as RowFrame).id,
      items: foldTaskItems(
        detail.items,
        task.id,
        frames.flatMap((frame) => (frame.event === 'session-event' ? [{ position: frame.id, ...frame.data }] : [])),
      ),
    }),
  });
}
