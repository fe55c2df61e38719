'use client';

import type { Item, Task, TaskStatus } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { type ButtonHTMLAttributes, memo, type ReactNode } from 'react';
import { useActions } from '@/components/live/actions';
import { useIsTaken } from '@/components/live/refusals';
import { ErrorText } from '@/components/ui/error-text';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { JumpLink } from '@/components/ui/jump';
import { useLiveness } from '@/components/ui/liveness';
import { Name, Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { ShowInLog, useIsHeld } from '@/components/ui/time-lock';
import { useDisclosure } from '@/components/ui/unfold';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { TaskFacts, TaskOrigin } from './task-facts';
import { TaskOutcome } from './task-status';
import { TaskSteps } from './task-steps';
import { TaskStop } from './task-stop';
import { TaskSummary } from './task-summary';
import { TaskWake } from './task-wake';
import { isBoilerplate, taskAnchor } from './task-words';

const wakeCode = new CodeOnDemand(async () => (await import('./wake-here')).WakeHere);
const outputCode = new CodeOnDemand(async () => (await import('./task-output')).TaskOutputPart);

const RULE: Record<TaskStatus, string> = {
  running: 'border-working stale:border-line-strong',
  completed: 'border-line-strong',
  failed: 'border-failed',
  stopped: 'border-line-strong',
  lost: 'border-waiting border-dashed',
};

interface TaskCardProps {
  task: Task;
  /** The tool call that started it, as the transcript shows calls. */
  call: ReactNode;
  renderItems: (items: readonly Item[], endedAt: number | null) => ReactNode;
}

/** A task at the place where it started. It goes on telling the truth there after the turn has moved on. */
export const TaskCard = memo(function TaskCard({ task, call, renderItems }: TaskCardProps) {
  const { open, id: stepsId, button } = useDisclosure();
  // What still runs is watched, and what failed says why in its last lines.
  const output = useDisclosure(task.status === 'running' || task.status === 'failed');
  const waking = useDisclosure();
  // TaskWake covers runners that can begin a turn with the result
  const isWoken = useIsTaken('task.wake') && task.kind !== 'subagent';
  const mayWake = useActions() !== null && task.isUndelivered === true && !isWoken;
  const held = useIsHeld(taskAnchor(task));
  const { stopped } = useLiveness();
  const isUnheard = stopped !== null && task.status === 'running';
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
    <div
      role="group"
      id={taskAnchor(task)}
      tabIndex={-1}
      aria-label={`Task ${nameText(task.description)}: ${isUnheard ? 'not heard of' : task.status}`}
      className={clsx(
        'group/task my-2.5 border-l-2 pl-3 outline-none',
        RULE[isUnheard ? 'lost' : task.status],
        held && 'bg-raised/60',
      )}
    >
      <div className="flex items-center gap-2">
        <Glyph name={task.status} />
        <span dir="auto" className="min-w-0 truncate font-medium" title={nameText(task.description)}>
          <Words text={task.description} />
        </span>
        <TaskOutcome task={task} className="flex-1" />
        <ShowInLog
          anchor={taskAnchor(task)}
          name={`task ${inQuotes(task.description)}`}
          className={clsx(
            !held && 'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-hover/task:opacity-100',
          )}
        />
      </div>
      {call}
      {task.error !== null && (
        <div className="py-0.5 text-failed text-xs">
          <ErrorText text={task.error} />
        </div>
      )}
      {task.summary !== null && !open && !isBoilerplate(task) && <TaskSummary text={task.summary} />}
      <div className="flex flex-wrap items-center gap-x-4 gap-y-0.5 text-2xs text-ink-3">
        {task.kind !== 'shell' && <FoldWords words="What it did" isOpen={open} button={button} />}
        {task.hasOutput && <FoldWords words="Output" isOpen={output.open} button={output.button} />}
        {task.summary !== null && isBoilerplate(task) && (
          <span>
            <Name text={task.summary} />
          </span>
        )}
        <TaskFacts task={task} />
        <TaskOrigin task={task} />
        <TaskStop task={task} />
        {task.isUndelivered && <span className="text-waiting">Result not delivered</span>}
        {mayWake && <FoldWords words="Wake the agent" isOpen={waking.open} button={waking.button} />}
        {!mayWake && <TaskWake task={task} />}
        {task.carriedBy !== undefined && (
          <JumpLink anchor={`message-${task.carriedBy}`} className="text-accent hover:underline">
            Result sent
          </JumpLink>
        )}
        {task.answeredInTurnId !== null && task.answeredInTurnId !== task.startedInTurnId && (
          <JumpLink
            anchor={`turn-${task.answeredInTurnId}`}
            className="flex items-center gap-1 text-accent hover:underline"
          >
            <Glyph name="woken" className="scale-90" />
            Woke the agent
          </JumpLink>
        )}
      </div>
      {mayWake && waking.open && (
        <div id={waking.id}>
          <OnDemand
            code={wakeCode}
            name="The result"
            props={{ agentId: task.agentId, sessionId: task.sessionId, task, onSent: () => {} }}
          />
        </div>
      )}
      {task.hasOutput && output.open && (
        <div id={output.id}>
          <OnDemand code={outputCode} name="What it writes" props={{ task }} />
        </div>
      )}
      {open && (
        <div id={stepsId} className="mt-1.5">
          <TaskSteps task={task} renderItems={renderItems} />
        </div>
      )}
    </div>
  );
});

/** A part of a card that folds. */
function FoldWords(props: { words: string; isOpen: boolean; button: ButtonHTMLAttributes<HTMLButtonElement> }) {
  const { words, isOpen, button } = props;
  return (
    <button type="button" {...button} className="-ml-0.5 flex items-center gap-1 hover:text-ink">
      <Icon
        of={ChevronRight}
        size={12}
        aria-hidden="true"
        className={clsx('transition-transform', isOpen && 'rotate-90')}
      />
      {words}
    </button>
  );
}
