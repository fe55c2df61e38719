'use client';

import type { Task, TaskItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { SessionLink } from '@/components/sessions/session-link';
import { CopyButton } from '@/components/ui/copy-button';
import { formatLength } from '@/components/ui/format-size';
import { Glyph } from '@/components/ui/glyph';
import { JumpLink } from '@/components/ui/jump';
import { longRunClass } from '@/components/ui/line-breaks';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { useHoldTail } from '@/components/ui/unfold';
import { nameText } from '@/components/ui/verbatim';
import { TaskOutcome } from './task-outcome';
import { taskAnchor, taskFont } from './task-words';

/** About three lines. */
const PREVIEW_CHARACTERS = 220;
const PREVIEW_LINES = 3;
/** Longest preview. A page may show hundreds. */
const MAX_PREVIEW = 1_000;
const PREVIEW_SIGNS = 100;

/** A task's summary: a plain-text preview. Shows the whole summary as Markdown on demand. */
export function TaskSummary({ text }: { text: string }) {
  const hold = useHoldTail();
  const [all, setAll] = useState(false);
  const words = useMemo(() => toPlainText(text), [text]);
  const isLong = text.length > PREVIEW_CHARACTERS || text.split('\n', PREVIEW_LINES + 1).length > PREVIEW_LINES;
  return (
    <div className="group/code py-0.5 text-ink-2 text-xs">
      {all ? (
        <Markdown text={text} className="text-xs!" />
      ) : (
        <p dir="auto" className={clsx('line-clamp-3 [overflow-wrap:anywhere]', longRunClass(words))}>
          <Words text={words} max={MAX_PREVIEW} signs={PREVIEW_SIGNS} />
        </p>
      )}
      {isLong && (
        <p className="flex h-5 items-center gap-3 text-2xs text-ink-3">
          <button
            type="button"
            aria-expanded={all}
            onClick={() => {
              hold();
              setAll(!all);
            }}
            className="underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            {all ? 'Show less' : `Show all (${formatLength(text.length)})`}
          </button>
          <CopyButton
            label="Copy summary"
            text={() => text}
            className={clsx(
              'pointer-coarse:opacity-100 focus-visible:opacity-100 group-hover/code:opacity-100',
              !all && 'opacity-0',
            )}
          />
        </p>
      )}
    </div>
  );
}

/** The end of a task, shown where the agent was notified. The task's card is shown where the task started. */
export function TaskEndLine(props: { task: Task; item: TaskItem; standsAlone: boolean }) {
  const { item, standsAlone } = props;
  // The item reports the task as lost or comes from another session, and the task's own session has reported more
  // since.
  const isPresumedLost = item.phase === 'lost' && props.task.status !== 'lost';
  const isOverruled = item.reportedBy !== undefined && props.task.reportedBy === null;
  const task: Task = isPresumedLost || isOverruled ? asReportedIn(props.task, item) : props.task;
  const line = (
    <>
      <p className="flex items-center gap-2 text-xs">
        <Glyph name={item.phase === 'started' ? 'running' : item.phase} />
        <JumpLink
          anchor={taskAnchor(task)}
          className={clsx('min-w-0 truncate text-ink-2 hover:text-ink hover:underline', taskFont(task))}
        >
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
    // biome-ignore lint/a11y/useSemanticElements: not a form group
    <div role="group" aria-label={`Task ${nameText(task.description)}: ${task.status}`} className="my-1.5">
      {line}
    </div>
  );
}

/** The task as this item reported it, without details that were reported later. */
function asReportedIn(task: Task, { phase, at }: TaskItem): Task {
  const status = phase === 'started' ? task.status : phase;
  return { ...task, status, endedAt: at, exitCode: null, summary: null, usage: null };
}
