import { CUSTOM, customName } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import type { TaskOutputDetail } from '../read-models';
import { appendOutputs } from '../task-output';
import type { EventEntry } from './event-entry';

/** What a run of a task has written, after more of its session's events. Whose an output is, ingest has said. */
export function foldTaskOutput<Detail extends Pick<TaskOutputDetail, 'taskPosition' | 'output'>>(
  detail: Detail,
  entries: readonly EventEntry[],
): Detail {
  const own = entries.filter(({ event }) => {
    return customName(event) === CUSTOM.taskOutput && readInterlude(event).taskPosition === detail.taskPosition;
  });
  if (own.length === 0) return detail;
  return {
    ...detail,
    output: appendOutputs(
      detail.output,
      own.map(({ event, occurredAt }) => [event, occurredAt]),
    ),
  };
}
