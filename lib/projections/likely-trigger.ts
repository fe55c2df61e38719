import type { TurnTrigger } from '@/lib/protocol/ag-ui';
import type { Unanswered } from '@/lib/protocol/turn-places';

/** What woke an agent that does not say: the task ends nobody has answered, where its run says it began by itself. */
export function likelyTrigger(endedTasks: readonly Unanswered[]): TurnTrigger {
  const ended = endedTasks.filter((task) => task.isToldElsewhere !== true);
  if (ended.length === 0) return { kind: 'unknown', taskIds: [] };
  const taskIds = ended.map((task) => task.id);
  const taskRunIds = ended.map((task) => task.runId);
  if (ended.every((task) => task.ofSessionId === undefined)) return { kind: 'task', taskIds, taskRunIds };
  return { kind: 'task', taskIds, taskRunIds, ofSessionIds: ended.map((task) => task.ofSessionId ?? null) };
}
