import type { Task, TaskItem } from '@interlude/protocol/read-models';
import { SessionLink } from '@/components/sessions/session-link';
import { Glyph } from '@/components/ui/glyph';
import { JumpLink } from '@/components/ui/jump';
import { Words } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { TaskOutcome } from './task-status';
import { TaskSummary } from './task-summary';
import { taskAnchor } from './task-words';

/** The end of a task, at the place where the agent was told of it. Its card is where it started. */
export function TaskEndLine(props: { task: Task; item: TaskItem; standsAlone: boolean }) {
  const { item, standsAlone } = props;
  // Here it was given up as lost, or reported by another session, though its own may have told more of it later.
  const gaveUp = item.phase === 'lost' && props.task.status !== 'lost';
  const isOverruled = item.reportedBy !== undefined && props.task.reportedBy === null;
  const task: Task = gaveUp || isOverruled ? asToldIn(props.task, item) : props.task;
  const line = (
    <>
      <p className="flex items-center gap-2 text-xs">
        <Glyph name={item.phase === 'started' ? 'running' : item.phase} />
        <JumpLink anchor={taskAnchor(task)} className="min-w-0 truncate text-ink-2 hover:text-ink hover:underline">
          <bdi>
            <Words text={task.description} />
          </bdi>
        </JumpLink>
        <TaskOutcome task={task} />
        {item.reportedBy !== undefined && (
          <span className="min-w-0 truncate text-2xs text-ink-3">
            reported by <SessionLink id={item.reportedBy} />
          </span>
        )}
      </p>
      {standsAlone && task.summary !== null && (
        <div className="ps-5">
          <TaskSummary text={task.summary} />
        </div>
      )}
    </>
  );
  if (!standsAlone) return <div className="my-1.5">{line}</div>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
    <div role="group" aria-label={`Task ${nameText(task.description)}: ${task.status}`} className="my-1.5">
      {line}
    </div>
  );
}

/** What stands on the card now was told later. */
function asToldIn(task: Task, { phase, at }: TaskItem): Task {
  const status = phase === 'started' ? task.status : phase;
  return { ...task, status, endedAt: at, exitCode: null, summary: null, usage: null };
}
