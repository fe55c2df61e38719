import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { fittingText } from '../writer/long-text';

/** What a text of a task may take as JSON. */
const MAX_TASK_TEXT = 64 * 1024;

export type TaskEnd = 'completed' | 'failed' | 'stopped';

const ENDS: ReadonlyMap<string, TaskEnd> = new Map([
  ['completed', 'completed'],
  ['done', 'completed'],
  ['success', 'completed'],
  ['failed', 'failed'],
  ['error', 'failed'],
  ['stopped', 'stopped'],
  ['cancelled', 'stopped'],
  ['canceled', 'stopped'],
  ['killed', 'stopped'],
]);

/** How a task ended by its status; null if it has not. */
export function endIn(status: unknown): TaskEnd | null {
  return ENDS.get(textOf(status) ?? '') ?? null;
}

/**
 * The value of a `task:*` event as the protocol has it.
 *
 * @param isHere the agent runs on this machine: files that it names are looked for
 * @returns null if it names no task
 */
export function taskValueOf(value: unknown, isHere: boolean): TaskEventValue | null {
  const said = fieldsOf(value);
  const id = textOf(said.task_id) ?? textOf(said.taskId) ?? textOf(said.id);
  if (id === null) return null;
  const file = textOf(said.output_file);
  return compact({
    task_id: truncateText(id, MAX_ID_LENGTH),
    run_id: idIn(said.run_id),
    tool_use_id: idIn(said.tool_use_id),
    description: words(said.description),
    task_type: words(said.task_type),
    subagent_type: words(said.subagent_type),
    parent_task_id: idIn(said.parent_task_id),
    status: words(said.status),
    summary: words(said.summary),
    ...(isHere ? { output_file: file } : { remote_output_file: file }),
    exit_code: numberOf(said.exit_code),
    error: words(said.error),
    usage: usageOf(said.usage),
    last_tool_name: words(said.last_tool_name),
    started_at: numberOf(said.started_at) ?? undefined,
    ended_at: numberOf(said.ended_at) ?? undefined,
  });
}

function idIn(value: unknown): string | null {
  const id = textOf(value);
  return id === null ? null : truncateText(id, MAX_ID_LENGTH);
}

export function words(value: unknown): string | undefined {
  const text = textOf(value);
  return text === null ? undefined : fittingText(text, MAX_TASK_TEXT);
}

function usageOf(value: unknown): TaskEventValue['usage'] {
  const { total_tokens: tokens, tool_uses: tools, duration_ms: ms }: Fields = fieldsOf(value);
  const usage = compact({
    total_tokens: numberOf(tokens) ?? undefined,
    tool_uses: numberOf(tools) ?? undefined,
    duration_ms: numberOf(ms) ?? undefined,
  });
  return Object.keys(usage).length === 0 ? undefined : usage;
}
