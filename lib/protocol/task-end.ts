import type { AgUiEvent } from './ag-ui';
import { CUSTOM, customName, customValue, pickText } from './event-fields';
import type { TaskEnd } from './read-models';

/** The words of agents for the end of a task, each with ours. */
const ENDS: Record<string, TaskEnd | undefined> = {
  completed: 'completed',
  success: 'completed',
  succeeded: 'completed',
  done: 'completed',
  failed: 'failed',
  error: 'failed',
  stopped: 'stopped',
  killed: 'stopped',
  cancelled: 'stopped',
  canceled: 'stopped',
  lost: 'lost',
};

/** @returns null while the task runs, or for an unknown word */
export function normaliseTaskEnd(status: string | null): TaskEnd | null {
  return status !== null && Object.hasOwn(ENDS, status) ? (ENDS[status] ?? null) : null;
}

/** The end of a task by one of its `task:*` events; null if it names none. */
export function taskEndTold(event: AgUiEvent): TaskEnd | null {
  // A task that writes goes on.
  if (customName(event) === CUSTOM.taskOutput) return null;
  const said = normaliseTaskEnd(pickText(customValue(event), 'status'));
  return said ?? (customName(event) === CUSTOM.taskCompleted ? 'completed' : null);
}
