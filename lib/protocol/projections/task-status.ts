import type { Task } from '../read-models';

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
