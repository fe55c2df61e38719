'use client';

import type { Item, Task, TaskStatus } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { type ButtonHTMLAttributes, memo, type ReactNode } from 'react';
import { useActions } from '@/components/live/actions';
import { useSupportsCommand } from '@/components/live/refusals';
import { useSelected } from '@/components/live/use-folded';
import { SessionLink } from '@/components/sessions/session-link';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { JumpLink } from '@/components/ui/jump';
import { useLiveness } from '@/components/ui/liveness';
import { Name, Phrase, Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { ShowInLog, useIsLocked } from '@/components/ui/time-lock';
import { useDisclosure } from '@/components/ui/unfold';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { ErrorText } from '@/components/ui/verbatim-text';
import { TaskOutcome } from './task-outcome';
import { TaskStop, TaskWake } from './task-stop';
import { TaskSummary } from './task-summary';
import { isBoilerplate, shortPath, taskAnchor, taskFont } from './task-words';
import { useTaskDetail } from './use-task-detail';

/** `812`, `14.2K`. */
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

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
  /** The tool call that started the task. */
  call: ReactNode;
  renderItems: (items: readonly Item[], endedAt: number | null) => ReactNode;
}

/** A task's card, shown where the task started. It stays current after its turn has ended. */
export const TaskCard = memo(function TaskCard({ task, call, renderItems }: TaskCardProps) {
  const { open, id: stepsId, button } = useDisclosure();
  // Open for running tasks, which people watch, and for failed tasks, whose last lines show the cause.
  const output = useDisclosure(task.status === 'running' || task.status === 'failed');
  const waking = useDisclosure();
  // TaskWake covers runners that can start a turn with the result.
  const isWoken = useSupportsCommand('task.wake') && task.kind !== 'subagent';
  const mayWake = useActions() !== null && task.isUndelivered === true && !isWoken;
  const isLocked = useIsLocked(taskAnchor(task));
  const { stopped } = useLiveness();
  const isSilent = stopped !== null && task.status === 'running';
  return (
    // biome-ignore lint/a11y/useSemanticElements: not a form group
    <div
      role="group"
      id={taskAnchor(task)}
      tabIndex={-1}
      aria-label={`Task ${nameText(task.description)}: ${isSilent ? 'no signal' : task.status}`}
      className={clsx(
        'group/task my-2.5 border-l-2 pl-3 focus-quiet',
        RULE[isSilent ? 'lost' : task.status],
        isLocked && 'bg-raised/60',
      )}
    >
      <div className="flex items-center gap-2">
        <Glyph name={task.status} />
        <span
          dir="auto"
          className={clsx('min-w-0 truncate font-medium', taskFont(task))}
          title={nameText(task.description)}
        >
          <Words text={task.description} />
        </span>
        <TaskOutcome task={task} className="flex-1" />
        <ShowInLog
          anchor={taskAnchor(task)}
          name={`task ${inQuotes(task.description)}`}
          className={clsx(
            !isLocked && 'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-hover/task:opacity-100',
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
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-2xs text-ink-3">
        {task.kind !== 'shell' && <FoldWords words="Steps" isOpen={open} button={button} />}
        {task.hasOutput && <FoldWords words="Output" isOpen={output.open} button={output.button} />}
        {task.summary !== null && isBoilerplate(task) && (
          <span>
            <Phrase text={task.summary} />
          </span>
        )}
        <TaskFacts task={task} />
        <TaskOrigin task={task} />
        <TaskStop task={task} />
        {task.isUndelivered && <span className="text-waiting">Result not delivered</span>}
        {mayWake && <FoldWords words="Wake the agent" isOpen={waking.open} button={waking.button} />}
        {!mayWake && <TaskWake task={task} />}
        {task.carriedBy !== undefined && (
          <JumpLink anchor={`message-${task.carriedBy}`} className="hit text-accent hover:underline">
            Result sent
          </JumpLink>
        )}
        {task.answeredInTurnId !== null && task.answeredInTurnId !== task.startedInTurnId && (
          <JumpLink
            anchor={`turn-${task.answeredInTurnId}`}
            className="hit flex items-center gap-1 text-accent hover:underline"
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
          <OnDemand code={outputCode} name="The output" props={{ task }} />
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

function FoldWords(props: { words: string; isOpen: boolean; button: ButtonHTMLAttributes<HTMLButtonElement> }) {
  const { words, isOpen, button } = props;
  return (
    <button
      type="button"
      {...button}
      className="-my-1 -ml-0.5 flex items-center gap-1 py-1 hover:text-ink pointer-coarse:my-0"
    >
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

/** A subagent's items, loaded on demand and kept current. */
function TaskSteps(props: { task: Task; renderItems: (items: readonly Item[], endedAt: number | null) => ReactNode }) {
  const { task, renderItems } = props;
  const { store, query } = useTaskDetail(task);
  const value = useSelected(store, (detail) => detail.value);
  if (query.isError) {
    return (
      <p className="text-ink-3 text-xs">
        The steps could not be loaded: {query.error.message}{' '}
        <button type="button" onClick={() => query.refetch()} className="underline hover:text-ink">
          Try again
        </button>
      </p>
    );
  }
  if (value === undefined) return <p className="text-ink-3 text-xs">Loading steps…</p>;
  if (value.items.length === 0) {
    return (
      <p className="text-ink-3 text-xs">{task.status === 'running' ? 'No steps yet.' : 'No steps were recorded.'}</p>
    );
  }
  return renderItems(value.items, task.endedAt);
}

/** Usage, current tool and output file of a task. */
export function TaskFacts({ task }: { task: Task }) {
  const { usage, outputFile } = task;
  return (
    <>
      {task.status === 'running' && task.lastToolName !== null && (
        <span>
          now in <Name text={task.lastToolName} layout="tool" />
        </span>
      )}
      {usage?.toolUses != null && usage.toolUses > 0 && <span>{plural(usage.toolUses, 'tool call')}</span>}
      {usage?.totalTokens != null && usage.totalTokens > 0 && <span>{COMPACT.format(usage.totalTokens)} tokens</span>}
      {outputFile !== null && (
        <span className="flex min-w-0 max-w-full items-center gap-1.5">
          {/* Keeps the end of the path. `dir=rtl` would clip the front but also reorder the slashes. */}
          <span className="truncate font-mono" title={nameText(outputFile)}>
            <Name text={shortPath(outputFile)} />
          </span>
          <CopyButton label="Copy output path" text={() => outputFile} />
        </span>
      )}
    </>
  );
}

/** Other sessions and people involved: who reported or assigned the task, and where its result was delivered. */
function TaskOrigin({ task }: { task: Task }) {
  const { reportedBy, assignedBy, toldElsewhere, answeredInTurnId } = task;
  return (
    <>
      {reportedBy !== null && (
        <span>
          Reported by <SessionLink id={reportedBy} />
        </span>
      )}
      {assignedBy !== null && (
        <span>
          Assigned to this session by <Name text={assignedBy} />
        </span>
      )}
      {toldElsewhere !== null && answeredInTurnId === null && (
        <span>
          Delivered in <SessionLink id={toldElsewhere.sessionId} anchor={`turn-${toldElsewhere.turnId}`} />
        </span>
      )}
    </>
  );
}
