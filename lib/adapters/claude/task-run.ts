import type { TaskEventValue } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, numberOf, textOf } from '@/lib/protocol/fields';
import type { TaskEnd as Status } from '@/lib/protocol/read-models';
import type { TaskEnd } from './task-ends';

/** One run of a task, as far as it is known. */
export interface TaskRun {
  /** Names the run here: its `runId` may become known later. */
  key: string;
  id: string;
  runId: string | null;
  toolUseId: string | null;
  type: string | null;
  /** `task_updated` ended it; the notification of that may still come. */
  patched: Status | null;
  /** Whether `background_tasks_changed` has listed it, and whether the last one did. */
  listed: 'never' | 'yes' | 'no longer';
  startedInRun: string | null;
  /** Epoch milliseconds. */
  startedAt: number;
}

export const STATUSES: ReadonlyMap<unknown, Status> = new Map([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['stopped', 'stopped'],
  ['killed', 'stopped'],
]);

export function endOf(task: TaskRun, quiet: boolean): TaskEnd {
  return { taskId: task.id, runId: task.runId, startedInRun: task.startedInRun, quiet };
}

export function keyOf(message: Fields): string {
  return JSON.stringify([message.task_id, message.run_id ?? null]);
}

export function isOf(task: TaskRun, entry: Fields): boolean {
  const runId = textOf(entry.run_id);
  return task.id === entry.task_id && (runId === null || task.runId === null || task.runId === runId);
}

/** `Background command "Poll" failed with exit code 3`, `… completed (exit code 0)`. Subagents have none. */
export function exitCode(task: TaskRun, status: Status, summary: string | null): number | null {
  const isShell = task.type === null ? summary?.startsWith('Background command') : task.type === 'local_bash';
  if (!isShell) return null;
  const said = /exit code (\d+)\)?$/.exec(summary ?? '')?.[1];
  if (said !== undefined) return Number(said);
  return status === 'completed' ? 0 : null;
}

export function usageOf(value: unknown): TaskEventValue['usage'] {
  const usage = fieldsOf(value);
  const told = compact({
    total_tokens: numberOf(usage.total_tokens) ?? undefined,
    tool_uses: numberOf(usage.tool_uses) ?? undefined,
    duration_ms: numberOf(usage.duration_ms) ?? undefined,
  });
  return Object.keys(told).length > 0 ? told : undefined;
}
