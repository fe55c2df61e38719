import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import type { Task, TaskEnd } from '@/lib/protocol/read-models';
import { customName, customValue, pickText } from './event-fields';

/** What agents call the end of a task, in our words. */
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

/** @returns null while the task runs, or for a word that says nothing about its end */
export function normaliseTaskEnd(status: string | null): TaskEnd | null {
  return status !== null && Object.hasOwn(ENDS, status) ? (ENDS[status] ?? null) : null;
}

/** How a `task:*` event says that its task ended, else null. */
export function taskEndTold(event: AgUiEvent): TaskEnd | null {
  const said = normaliseTaskEnd(pickText(customValue(event), 'status'));
  return said ?? (customName(event) === CUSTOM.taskCompleted ? 'completed' : null);
}

/** How a run stands, and by whose word, where that is another session's. */
export type Standing = Pick<Task, 'status' | 'reportedBy'>;

/**
 * Whether what is told of a run takes the place of what was told before. The first of equal words stands; what another
 * session reported gives way to the task's own, and `lost`, which is a guess, to any end.
 */
export function overrules(told: Standing, before: Standing): boolean {
  return firmness(told) > firmness(before);
}

/** Whether the task's own session has said how it ended: nobody's word goes before that. */
export function isFinal({ status, reportedBy }: Standing): boolean {
  return hasEnded(status) && reportedBy === null;
}

/** Whether somebody has said that it ended: `lost` is a guess. */
export function hasEnded(status: Task['status']): boolean {
  return status !== 'running' && status !== 'lost';
}

function firmness({ status, reportedBy }: Standing): number {
  if (status === 'running') return 0;
  return (hasEnded(status) ? 3 : 1) + (reportedBy === null ? 1 : 0);
}

const KINDS: Record<string, string | undefined> = { local_bash: 'shell', bash: 'shell', local_agent: 'subagent' };

export function normaliseTaskKind(type: string | null): string {
  if (type === null) return 'task';
  return Object.hasOwn(KINDS, type) ? (KINDS[type] ?? type) : type;
}
