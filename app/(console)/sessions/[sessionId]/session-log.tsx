'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { X } from 'lucide';
import { type ReactNode, useCallback, useEffect, useEffectEvent, useMemo } from 'react';
import { flushSync } from 'react-dom';
import { formatLogTime, useLogSettings } from '@/components/logs/log-settings';
import { taskAnchor } from '@/components/tasks/task-words';
import { type Span, type TurnAtLine, useTimeLock, useTurnAtLine } from '@/components/time-lock/time-lock';
import { turnTitle } from '@/components/transcript/turn-cause';
import { useNow } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { type Jump, JumpLink, JumpProvider } from '@/components/ui/jump';
import { Words } from '@/components/ui/name';
import { usePreload } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { LogPanel, levelCode, logCode, type useLogPanel } from './log-panel';
import { useSessionScope, useTaskNames, useTranscriptState } from './session-scope';

const NO_TURNS: readonly Turn[] = [];

/** The log beside a session's transcript, linked by time. */
export function SessionLog(props: {
  panel: ReturnType<typeof useLogPanel>;
  tasks: readonly Task[];
  children: ReactNode;
}) {
  const { panel, tasks, children } = props;
  usePreload(logCode);
  usePreload(levelCode);
  const { covers, close, show } = panel;
  const { sessionId, shown: transcript } = useSessionScope();
  const turns = useTranscriptState((state) => state?.turns) ?? NO_TURNS;
  const names = useTaskNames(tasks);

  // The focus stays in the log.
  const showTurn = useCallback(
    (turnId: string) => {
      transcript.current?.show(`turn-${turnId}`, { focus: false });
    },
    [transcript],
  );
  const { turnAtLine: ran, lookUp: ask, clear: forget } = useTurnAtLine(sessionId, showTurn);
  // A new span makes the previous line's answer obsolete.
  const onHold = useCallback(() => {
    forget();
    show();
  }, [forget, show]);
  const { lock, held, span, release } = useTimeLock({ turns, tasks, onHold });
  const jump = useCallback<Jump>(
    (anchor) => {
      // A covered transcript can't take the focus.
      if (covers) flushSync(() => close({ leaves: true }));
      transcript.current?.show(anchor);
    },
    [covers, close, transcript],
  );
  useShortcuts({
    'transcript.in-log': () => {
      const anchor = anchorAt(document.activeElement);
      if (anchor === null) return false;
      lock.toggle(anchor);
    },
  });
  useShowClicked(panel.open && !covers, held, lock.toggle);

  const turnNamed = useCallback(
    (id: string): Named => {
      const turn = turns.find((one) => one.id === id);
      return { anchor: `turn-${id}`, title: turn === undefined ? 'a turn' : turnTitle(turn, names) };
    },
    [turns, names],
  );
  const heldNamed = useMemo(() => {
    if (held === null || span === null) return null;
    const task = tasks.find((one) => taskAnchor(one) === held);
    const { title } =
      task === undefined ? turnNamed(held.slice('turn-'.length)) : { title: `Task ${inQuotes(task.description)}` };
    return { anchor: held, title, span };
  }, [held, span, tasks, turnNamed]);
  const answer = ran?.answer ?? null;
  return (
    <TimeLockProvider value={lock}>
      {children}
      {panel.open && (
        <LogPanel panel={panel} span={span} onLineClick={ask}>
          <JumpProvider jump={jump}>
            <LogContext
              held={heldNamed}
              ran={
                ran && {
                  found: ran,
                  turn: answer?.turnId == null ? null : turnNamed(answer.turnId),
                  tasks: answer === null ? [] : tasksAt(tasks, answer.taskIds, ran.at),
                }
              }
              onRelease={release}
            />
          </JumpProvider>
        </LogPanel>
      )}
    </TimeLockProvider>
  );
}

/** The named tasks that were running at a time. Later runs may have reused an id. */
function tasksAt(tasks: readonly Task[], ids: readonly string[], at: number): Named[] {
  return ids.flatMap((id) => {
    const task = tasks.find((one) => one.id === id && one.startedAt <= at && (one.endedAt ?? at) >= at);
    return task === undefined ? [] : [{ anchor: taskAnchor(task), title: inQuotes(task.description) }];
  });
}

/** Anchor of the turn or task card that contains an element. */
function anchorAt(element: Element | null): string | null {
  return element?.closest('[id^="task-"], [data-turn]')?.id || null;
}

/** Elements with their own click action. */
const CONTROLS = 'a, button, input, select, textarea, summary, label, [role="button"], [contenteditable]';

/** With the log beside the transcript, a click on a turn or task moves the log to its time. */
function useShowClicked(isBeside: boolean, held: string | null, toggle: (anchor: string) => void): void {
  const handle = useEffectEvent((anchor: string) => {
    if (anchor !== held) toggle(anchor);
  });
  useEffect(() => {
    if (!isBeside) return;
    const listen = ({ target, defaultPrevented }: MouseEvent) => {
      if (defaultPrevented || !(target instanceof Element) || target.closest(CONTROLS)) return;
      // a click that selects text
      if (document.getSelection()?.isCollapsed === false) return;
      const anchor = anchorAt(target);
      if (anchor !== null) handle(anchor);
    };
    document.addEventListener('click', listen);
    return () => document.removeEventListener('click', listen);
  }, [isBeside]);
}

/** An element of the transcript with its anchor. */
interface Named {
  anchor: string;
  title: string;
}

/** Links between log and transcript: the shown time span, and what ran when the chosen line was written. */
function LogContext(props: {
  held: (Named & { span: Span }) | null;
  ran: { found: TurnAtLine; turn: Named | null; tasks: readonly Named[] } | null;
  onRelease: () => void;
}) {
  const { held, ran, onRelease } = props;
  const isEmpty = held === null && ran === null;
  return (
    <div
      className={clsx(
        'flex shrink-0 flex-wrap items-baseline gap-x-5 gap-y-0.5 px-3 text-ink-3 text-xs sm:px-4',
        !isEmpty && 'border-t py-1',
      )}
    >
      {held !== null && (
        <p className="flex min-w-0 max-w-full items-baseline gap-2">
          <span aria-hidden="true" className="h-3 w-0.5 shrink-0 self-center bg-ink-2" />
          <Place {...held} />
          <SpanOf span={held.span} />
          <button
            type="button"
            aria-label={`Release ${nameText(held.title)}`}
            title="Release"
            onClick={onRelease}
            className="hit shrink-0 self-center hover:text-ink"
          >
            <Icon of={X} size={12} />
          </button>
        </p>
      )}
      {/* Announced to screen readers, too. */}
      <p role="status" className="flex min-w-0 max-w-full flex-wrap items-baseline gap-x-1.5">
        {ran !== null && <Ran {...ran} held={held?.anchor ?? null} />}
      </p>
    </div>
  );
}

function SpanOf({ span: { from, to } }: { span: Span }) {
  return (
    <span className="tabular shrink-0 text-2xs">
      <LogTime at={from} />
      {to === Number.POSITIVE_INFINITY ? ' until now' : ` for ${formatDuration(to - from)}`}
    </span>
  );
}

function Ran(props: { found: TurnAtLine; turn: Named | null; tasks: readonly Named[]; held: string | null }) {
  const { found, turn, tasks, held } = props;
  const { answer, error } = found;
  if (error !== null) return <span className="text-failed">The turn could not be loaded: {error}</span>;
  if (answer === null) return null;
  return (
    <>
      <LogTime at={found.at} />
      {turn === null && <span>before the first turn</span>}
      {turn !== null && <span>{answer.running ? 'in' : 'after'}</span>}
      {turn !== null && (turn.anchor === held ? <span>that turn</span> : <Place {...turn} />)}
      {tasks.length > 0 && <span>while {tasks.length === 1 ? 'a task' : `${tasks.length} tasks`} ran:</span>}
      {tasks.map((task) => (
        <Place key={task.anchor} {...task} />
      ))}
    </>
  );
}

/** A time in the log's format. */
function LogTime({ at }: { at: number }) {
  const [{ isUtc }] = useLogSettings();
  return <time className="tabular shrink-0 text-2xs">{useNow((now) => formatLogTime(at, isUtc, now))}</time>;
}

function Place({ anchor, title }: Named) {
  return (
    <JumpLink
      anchor={anchor}
      className="min-w-0 truncate text-ink-2 underline decoration-line-strong underline-offset-3 hover:text-ink"
    >
      <bdi>
        <Words text={title} />
      </bdi>
    </JumpLink>
  );
}
