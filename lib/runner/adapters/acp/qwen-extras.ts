import { compact, type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/**
 * What Qwen Code says beside ACP: chunks with a `source`, and around a turn that it begins by itself the request
 * `_qwencode/start_turn` and the notification `_qwencode/end_turn`.
 *
 * @see @qwen-code/qwen-code 0.24.4
 */
export interface EndedTask {
  task_id: string;
  status: 'completed' | 'failed' | 'stopped';
  summary: string;
  description?: string;
}

/** The word that a task has ended, which comes as a text and is none of the agent's. */
export function endOfBackgroundTask(meta: Fields, text: string): EndedTask | null {
  if (meta.source !== 'background_task_completed') return null;
  const { taskId, status, commandLabel, label } = fieldsOf(meta.backgroundTask);
  const id = textOf(taskId);
  if (id === null) return null;
  return compact({
    task_id: id,
    status:
      status === 'failed'
        ? ('failed' as const)
        : status === 'cancelled'
          ? ('stopped' as const)
          : ('completed' as const),
    summary: truncateText(text, 2_000),
    description: textOf(commandLabel) ?? textOf(label) ?? undefined,
  });
}

/** The same word once more, now with the turn that answers it. */
export function isOwnTurnNotice(meta: Fields): boolean {
  return meta.source === 'background_notification';
}
