import type { TaskEnd } from '@/lib/protocol/read-models';

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

const KINDS: Record<string, string | undefined> = { local_bash: 'shell', bash: 'shell', local_agent: 'subagent' };

export function normaliseTaskKind(type: string | null): string {
  if (type === null) return 'task';
  return Object.hasOwn(KINDS, type) ? (KINDS[type] ?? type) : type;
}
