import { clsx } from 'clsx';
import { TaskPanel } from '@/components/tasks/task-panel';
import { type Jump, JumpProvider } from '@/components/ui/jump';
import type { useNamedTasks } from './use-named-tasks';

/** A session's tasks: beside its transcript where there is room, in its place on a phone. Nothing where there are none. */
export function TaskPane(
  props: ReturnType<typeof useNamedTasks> & { isShown: boolean; onClose: () => void; jump: Jump },
) {
  const { tasks, omitted, isShown, onClose, jump } = props;
  if (tasks.length === 0) return null;
  return (
    <div
      className={clsx(
        'min-h-0 flex-col border-l 2xl:flex 2xl:w-[320px] 2xl:shrink-0',
        isShown ? 'flex w-full lg:w-[280px] lg:shrink-0' : 'hidden',
      )}
    >
      {isShown && (
        <button
          type="button"
          onClick={onClose}
          className="px-5 pt-3 text-left text-ink-3 text-xs underline hover:text-ink lg:hidden"
        >
          Back to the transcript
        </button>
      )}
      <JumpProvider jump={jump}>
        <TaskPanel tasks={tasks} omitted={omitted} />
      </JumpProvider>
    </div>
  );
}
