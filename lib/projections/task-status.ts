import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import { customName, customValue, pickText } from '@/lib/protocol/event-fields';
import type { Task, TaskEnd } from '@/lib/protocol/read-models';

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

/** @returns null while the task runs, or for a word we don't know */
export function normaliseTaskEnd(status: string | null): TaskEnd | null {
  return status !== null && Object.hasOwn(ENDS, status) ? (ENDS[status] ?? null) : null;
}

/** How its task ended, according to a `task:*` event; null if it does not say. */
export function taskEndTold(event: AgUiEvent): TaskEnd | null {
  // whatever a task writes, it goes on
  if (customName(event) === CUSTOM.taskOutput) return null;
  const said = normaliseTaskEnd(pickText(customValue(event), 'status'));
  return said ?? (customName(event) === CUSTOM.taskCompleted ? 'completed' : null);
}

/** The status of a run, and which other session reported it, if one did, or that nobody did. */
type Standing = Pick<Task, 'status' | 'reportedBy' | 'presumed'>;

/**
 * Whether a report about a run replaces an earlier one. Of equally firm reports the first stands; a report by another
 * session gives way to one by the task's own, and `lost`, which is a guess, to any end. What is only presumed gives way
 * to whatever is told.
 */
export function overrules(told: Standing, before: Standing): boolean {
  return firmness(told) > firmness(before);
}

/** Whether the task's own session has said how it ended: no other report overrules that. */
export function isFinal({ status, reportedBy }: Standing): boolean {
  return hasEnded(status) && reportedBy === null;
}

/** Whether it may still turn out to run: it does, or nobody said that it does not. */
export function mayRun({ status, presumed }: Standing): boolean {
  return status === 'running' || presumed !== undefined;
}

/** Whether it was reported to have ended: `lost` is only a guess. */
export function hasEnded(status: Task['status']): boolean {
  return status !== 'running' && status !== 'lost';
}

function firmness({ status, reportedBy, presumed }: Standing): number {
  if (status === 'running') return 0;
  if (presumed !== undefined) return 1;
  return (hasEnded(status) ? 4 : 2) + (reportedBy === null ? 1 : 0);
}

const KINDS: Record<string, string | undefined> = { local_bash: 'shell', bash: 'shell', local_agent: 'subagent' };

export function normaliseTaskKind(type: string): string {
  return Object.hasOwn(KINDS, type) ? (KINDS[type] ?? type) : type;
}
