import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { TaskOutputDetail } from '@/lib/protocol/read-models';
import { appendOutput } from '@/lib/protocol/task-output';
import type { EventEntry } from './event-entry';
import { customName, customValue, pickId, taskEventId } from './event-fields';
import { taskEndTold } from './task-status';

type Fold = Omit<TaskOutputDetail, 'position'>;

/** What one run of a task has written, after more of its session's events. */
export function foldTaskOutput<Detail extends Fold>(detail: Detail, entries: readonly EventEntry[]): Detail {
  let next = detail;
  for (const entry of entries) next = afterEntry(next, entry);
  return next;
}

function afterEntry<Detail extends Fold>(detail: Detail, { event, occurredAt }: EventEntry): Detail {
  if (detail.isOver) return detail;
  const name = customName(event);
  if (name === CUSTOM.sessionEnded) return { ...detail, hasEnded: true };
  if (taskEventId(event) !== detail.taskId) return detail;
  const runId = pickId(customValue(event), 'run_id', 'runId');
  const isOther = runId !== null && detail.runId !== null && runId !== detail.runId;
  if (name === CUSTOM.taskStarted && detail.hasEnded && (runId === null || isOther)) return { ...detail, isOver: true };
  // All that comes between the beginnings of two runs is the first one's, as on the server, where it is one row.
  if (name === CUSTOM.taskOutput) return { ...detail, output: appendOutput(detail.output, event, occurredAt) };
  return isOther || taskEndTold(event) === null ? detail : { ...detail, hasEnded: true };
}
