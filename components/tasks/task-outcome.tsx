import type { Task } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { RunningClock } from '@/components/ui/day';
import { useLiveness } from '@/components/ui/liveness';
import { taskOutcome } from './task-words';

/** `failed, exit 3 · 3.0 s` */
export function TaskOutcome({ task, className }: { task: Task; className?: string }) {
  const { stopped } = useLiveness();
  const isLost = task.status === 'lost' || (stopped !== null && task.status === 'running');
  return (
    <span className={clsx('tabular flex shrink-0 items-baseline gap-2 whitespace-nowrap text-2xs', className)}>
      <span className={task.status === 'failed' ? 'text-failed' : isLost ? 'text-waiting' : 'text-ink-2'}>
        {stopped !== null && task.status === 'running' ? 'no signal' : taskOutcome(task)}
      </span>
      <span className="ml-auto text-ink-3">
        {task.endedAt === null ? (
          <RunningClock since={task.startedAt} />
        ) : (
          formatDuration(task.usage?.durationMs ?? task.endedAt - task.startedAt)
        )}
      </span>
    </span>
  );
}
