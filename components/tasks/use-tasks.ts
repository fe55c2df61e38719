'use client';

import type { Position } from '@interlude/protocol/position';
import { foldTaskItems } from '@interlude/protocol/projections/transcript';
import type { Task, TaskDetail, TaskList } from '@interlude/protocol/read-models';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { entriesOf } from '@/components/live/row-frame';
import type { ShownList } from '@/components/live/row-table';
import { readingKey, takeOf, useFleet, useFleetStores, useReading } from '@/components/live/use-fleet';
import { useFolded } from '@/components/live/use-folded';

const NONE: ShownList<Task> = { rows: [], next: null, count: 0 };

/** The tasks of a session: all of them, or until those are read the part that came with the page. */
export function useTasks(sessionId: string): { tasks: readonly Task[]; omitted: number } {
  useReading({
    table: 'tasks',
    kind: 'list',
    of: sessionId,
    load: (signal) => readTasks(sessionId, signal),
    take: (fleet, list) => fleet.takeTasks(sessionId, list),
  });
  const { rows, count } = useFleet(({ tasks }) => tasks.list(sessionId)) ?? NONE;
  return { tasks: rows, omitted: count };
}

/**
 * Reads the list again when some are removed with the session's oldest turns: the stream does not tell of a row that
 * goes.
 */
export function useTasksLeft(sessionId: string, removedUpTo: Position | undefined): void {
  const { fleet } = useFleetStores();
  const queries = useQueryClient();
  const [first] = useState(removedUpTo);
  useQuery({
    queryKey: ['tasks left', sessionId, removedUpTo],
    queryFn: async ({ signal }) => {
      // one that was asked for before the removal could come after this one, and bring back what is gone
      await queries.cancelQueries({ queryKey: readingKey('list', 'tasks', sessionId) });
      return await takeOf(fleet, readTasks(sessionId, signal), (list) => {
        fleet.drop('tasks', sessionId);
        fleet.takeTasks(sessionId, list);
      });
    },
    enabled: removedUpTo !== first,
  });
}

function readTasks(sessionId: string, signal: AbortSignal): Promise<TaskList> {
  return fetchJson<TaskList>(`/sessions/${encodeURIComponent(sessionId)}/tasks`, signal);
}

/** What a task's subagent said and did, kept current while it is looked at. */
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

/** The address of a run of a task. */
export function pathOf({ id, runId, sessionId }: Task, what: '' | '/output'): string {
  const run = runId === null ? '' : `?runId=${encodeURIComponent(runId)}`;
  return `/sessions/${encodeURIComponent(sessionId)}/tasks/${encodeURIComponent(id)}${what}${run}`;
}
