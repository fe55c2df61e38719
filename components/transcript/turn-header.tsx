'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { type ReactNode, useMemo } from 'react';
import { SessionLink } from '@/components/sessions/session-link';
import { Moment } from '@/components/ui/day';
import { Glyph } from '@/components/ui/glyph';
import { JumpLink } from '@/components/ui/jump';
import { longRunClass } from '@/components/ui/line-breaks';
import { Name, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { Term } from '@/components/ui/term';
import { useTranscriptSlots } from './transcript-slots';
import { causeOf, type ForeignTask } from './turn-cause';

/** Maximum number of tasks listed. Further tasks are only counted, and each has a card. */
const MAX_LISTED = 50;
const REASON_CHARACTERS = 300;
/** The task's card shows the rest of its summary. */
const SUMMARY_CHARACTERS = 1_000;
const SUMMARY_SIGNS = 100;

/**
 * The header of a turn that no person started: its cause, with links to the tasks' cards. A person's prompt may have
 * joined a turn that a timer started.
 */
export function TurnHeader({ turn }: { turn: Turn }) {
  const cause = causeOf(turn, useTranscriptSlots());
  if (cause.kind === 'other') {
    return (
      <Head>
        <span>
          {WOKEN_BY} {cause.words}
        </span>
      </Head>
    );
  }
  if (cause.kind === 'timer') return <TimerHead reason={cause.reason} setAt={cause.setAt} />;
  const [only] = cause.tasks;
  const by = cause.byInterlude ? (
    <span title="The agent is not notified when such a task ends. Interlude started this turn with the result.">
      Woken by Interlude for
    </span>
  ) : (
    WOKEN_BY
  );
  if (only === undefined) {
    return (
      <Head>
        <ForeignTasks tasks={cause.foreign} />
      </Head>
    );
  }
  const foreign = cause.foreign.length > 0 && (
    <span className="text-ink-2">
      · <ForeignTasks tasks={cause.foreign} />
    </span>
  );
  if (cause.tasks.length === 1) {
    return (
      <Head below={<Summary task={only.task} />}>
        {by} <WakingTask id={only.id} task={only.task} />
        {foreign}
      </Head>
    );
  }
  return (
    <Head
      below={
        <ul className="pl-5 text-xs">
          {cause.tasks.slice(0, MAX_LISTED).map(({ id, task }) => (
            <li key={task?.position ?? id} className="flex items-baseline gap-2">
              <Glyph name={task?.status ?? 'lost'} className="relative top-[1.5px]" />
              <WakingTask id={id} task={task} />
            </li>
          ))}
          {cause.tasks.length > MAX_LISTED && (
            <li className="pl-5 text-ink-3">and {(cause.tasks.length - MAX_LISTED).toLocaleString('en')} more</li>
          )}
        </ul>
      }
    >
      {by} {cause.tasks.length} tasks
      {foreign}
    </Head>
  );
}

const WOKEN_BY = (
  <Term of="between-run turn" skipped>
    Woken by
  </Term>
);

function TimerHead({ reason, setAt }: { reason: string | null; setAt: number | null }) {
  return (
    <Head>
      <span>
        {WOKEN_BY} a timer{reason !== null && ': '}
      </span>
      {reason !== null && (
        <bdi className="min-w-0 font-medium [overflow-wrap:anywhere]">
          <Words text={reason} max={REASON_CHARACTERS} />
        </bdi>
      )}
      {setAt !== null && (
        <span className="shrink-0 text-ink-2">
          · set <Moment at={setAt} className="tabular" />
        </span>
      )}
    </Head>
  );
}

/** Tasks of other sessions that the agent was notified about. */
function ForeignTasks({ tasks }: { tasks: readonly ForeignTask[] }) {
  const sessionIds = [...new Set(tasks.map(({ sessionId }) => sessionId))];
  return (
    <>
      Notified about {tasks.length === 1 ? 'a task' : `${tasks.length} tasks`} in{' '}
      {sessionIds.slice(0, MAX_LISTED).map((id) => (
        <SessionLink key={id} id={id} className="font-medium" />
      ))}
    </>
  );
}

function Head({ children, below }: { children: ReactNode; below?: ReactNode }) {
  return (
    <header className="mb-2">
      <h2 className="flex items-baseline gap-2 text-accent text-xs">
        <Glyph name="woken" className="relative top-[1.5px]" />
        <span className="flex min-w-0 flex-wrap items-baseline gap-x-1.5">{children}</span>
      </h2>
      {below}
    </header>
  );
}

function WakingTask({ id, task }: { id: string; task: Task | null }) {
  const slots = useTranscriptSlots();
  if (task === null)
    return (
      <span className="font-medium text-accent">
        task <Name text={id} />
      </span>
    );
  return (
    <>
      <JumpLink
        anchor={slots.anchorOf(task)}
        className="hit-line min-w-0 truncate font-medium text-accent underline decoration-accent-line underline-offset-3 hover:decoration-current"
      >
        <bdi>
          <Words text={task.description} />
        </bdi>
      </JumpLink>
      <span className={task.status === 'failed' ? 'shrink-0 text-failed' : 'shrink-0 text-ink-2'}>
        {slots.outcomeOf(task)}
      </span>
      {task.endedAt !== null && (
        <span className="tabular shrink-0 text-2xs text-ink-3">
          {formatDuration(task.usage?.durationMs ?? task.endedAt - task.startedAt)}
        </span>
      )}
    </>
  );
}

function Summary({ task }: { task: Task | null }) {
  const slots = useTranscriptSlots();
  const text = task === null ? null : slots.tellingSummary(task);
  const words = useMemo(() => (text === null ? null : toPlainText(text)), [text]);
  if (words === null) return null;
  return (
    <p
      dir="auto"
      className={clsx('mt-0.5 ml-5 line-clamp-2 text-ink-3 text-xs [overflow-wrap:anywhere]', longRunClass(words))}
    >
      <Words text={words} max={SUMMARY_CHARACTERS} signs={SUMMARY_SIGNS} />
    </p>
  );
}
