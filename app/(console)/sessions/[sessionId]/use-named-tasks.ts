import type { Task } from '@interlude/protocol/read-models';
import { useMemo } from 'react';
import { TaskIndex } from '@/components/tasks/task-index';
import { namedTask, taskOutcome } from '@/components/tasks/task-words';
import { useTasks } from '@/components/tasks/use-tasks';
import type { TranscriptSlots } from '@/components/transcript/transcript-slots';
import { useSessionScope } from './session-scope';

/** The session's tasks as they are shown. */
export function useNamedTasks() {
  const { tasks, omitted } = useTasks(useSessionScope().sessionId);
  return { tasks: useMemo(() => tasks.map(namedTask), [tasks]), omitted };
}

/** What names a turn by the tasks that woke the agent. */
export function useTaskNames(tasks: readonly Task[]): Pick<TranscriptSlots, 'findTask' | 'outcomeOf'> {
  return useMemo(() => {
    const index = new TaskIndex(tasks);
    return { findTask: (ref) => index.find(ref), outcomeOf: taskOutcome };
  }, [tasks]);
}
