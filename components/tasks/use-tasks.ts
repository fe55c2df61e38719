'use client';

import type { Position } from '@interlude/protocol/position';
import type { Task, TaskList } from '@interlude/protocol/read-models';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { ShownList } from '@/components/live/row-table';
import { applyUnlessReset, fleetQueryKey, useFleet, useFleetQuery, useFleetStores } from '@/components/live/use-fleet';

const NONE: ShownList<Task> = { rows: [], next: null, count: 0 };

/** The tasks of a session. Until they are loaded, the part that the server sent. */
export function useTasks(sessionId: string): { tasks: readonly Task[]; omitted: number } {
  useFleetQuery({
    table: 'tasks',
    kind: 'list',
    of: sessionId,
    load: (signal) => readTasks(sessionId, signal),
    put: (fleet, list) => fleet.putTasks(sessionId, list),
  });
  const { rows, count } = useFleet(({ tasks }) => tasks.list(sessionId)) ?? NONE;
  return { tasks: rows, omitted: count };
}

/**
 * Reloads the tasks when some are removed with the session's oldest turns, because the stream does not report removals.
 */
export function useTasksAfterRemoval(sessionId: string, removedUpTo: Position | undefined): void {
  const { fleet } = useFleetStores();
  const queries = useQueryClient();
  const [first] = useState(removedUpTo);
  useQuery({
    queryKey: ['tasks-after-removal', sessionId, removedUpTo],
    queryFn: async ({ signal }) => {
      // A read that started before the removal would restore removed tasks.
      await queries.cancelQueries({ queryKey: fleetQueryKey('list', 'tasks', sessionId) });
      return await applyUnlessReset(fleet, readTasks(sessionId, signal), (list) => {
        fleet.drop('tasks', sessionId);
        fleet.putTasks(sessionId, list);
      });
    },
    enabled: removedUpTo !== first,
  });
}

function readTasks(sessionId: string, signal: AbortSignal): Promise<TaskList> {
  return fetchJson<TaskList>(`/sessions/${encodeURIComponent(sessionId)}/tasks`, signal);
}
