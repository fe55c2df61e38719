import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import type { TaskEnd as Status } from '@interlude/protocol/read-models';
import type { TaskRun } from '../writer/task-runs';
import type { TaskEnd } from './task-ends';

export const STATUSES: ReadonlyMap<unknown, Status> = new Map([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['stopped', 'stopped'],
  ['killed', 'stopped'],
]);

type Ids = Pick<TaskEventValue, 'task_id' | 'run_id' | 'tool_use_id' | 'task_type'>;

/** The task that a message is about; null if it names none. */
export function idsOf({ task_id, run_id, tool_use_id, task_type }: Fields): Ids | null {
  const id = textOf(task_id);
  if (id === null) return null;
  const ids = { task_id: id, run_id: textOf(run_id), tool_use_id: textOf(tool_use_id) ?? undefined };
  return compact({ ...ids, task_type: textOf(task_type) ?? undefined });
}

/** The ids that each event of a run bears. */
export function runIds({ id, runId, toolUseId }: TaskRun): Ids {
  return compact({ task_id: id, run_id: runId, tool_use_id: toolUseId ?? undefined });
}

export function startOf(ids: Ids, message: Fields): TaskEventValue {
  return compact({
    ...ids,
    description: textOf(message.description) ?? undefined,
    task_type: ids.task_type ?? textOf(message.task_type) ?? undefined,
    subagent_type: textOf(message.subagent_type) ?? undefined,
    parent_task_id: textOf(message.parent_task_id) ?? undefined,
  });
}

export function endOf(run: TaskRun, quiet: boolean): TaskEnd {
  return { taskId: run.id, runId: run.runId, startedInRun: run.startedIn, quiet };
}

export function keyOf(message: Fields): string {
  return JSON.stringify([message.task_id, message.run_id ?? null]);
}

export function isOf(run: TaskRun, entry: Fields): boolean {
  const runId = textOf(entry.run_id);
  return run.id === entry.task_id && (runId === null || run.runId === null || run.runId === runId);
}

/** `Background command "Poll" failed with exit code 3`, `… completed (exit code 0)`. Subagents have none. */
export function exitCode(type: string | null, status: Status, summary: string | null): number | null {
  const isShell = type === null ? summary?.startsWith('Background command') : type === 'local_bash';
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
