'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { ExternalLink, X } from 'lucide';
import { useCallback, useEffect, useEffectEvent } from 'react';
import { AgentLog } from '@/components/logs/agent-log';
import { LevelMenu } from '@/components/logs/level-menu';
import { formatLogTime, useLogSettings } from '@/components/logs/log-settings';
import { taskAnchor } from '@/components/tasks/task-words';
import { anchorAt, type Span } from '@/components/time-lock/time-lock';
import { type TurnAtLine, useTurnAtLine } from '@/components/time-lock/turn-at-line';
import { turnTitle } from '@/components/transcript/turn-cause';
import { BottomPane } from '@/components/ui/bottom-pane';
import { useClock } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { type Jump, JumpLink, JumpProvider } from '@/components/ui/jump';
import { Link } from '@/components/ui/link';
import { Words } from '@/components/ui/name';
import { useShortcuts, useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';
import { useTimeFormat } from '@/components/ui/time-format';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { useSessionRows, useSessionScope, useTaskNames } from './session-scope';
import type { useLogPanel } from './use-log-panel';

interface LogPanelProps {
  panel: ReturnType<typeof useLogPanel>;
  turns: readonly Turn[];
  tasks: readonly Task[];
  /** Anchor of the turn or task that the log is locked to. */
  lockedAnchor: string | null;
  span: Span | null;
  onRelease: () => void;
  /** Locks the log to an item, or unlocks it. */
  toggle: (anchor: string) => void;
}

/** The log of a session's agent, below the transcript or in its tab. */
export function LogPanel({ panel, toggle, ...locked }: LogPanelProps) {
  const { span, lockedAnchor } = locked;
  const { session, agent } = useSessionRows();
  const { agentId } = session;
  const withKey = useTitleWithKey('log.leave');
  const { id, box, isBelow, takesFocus, close } = panel;
  const { sessionId, shown: transcript } = useSessionScope();
  // The focus stays in the log.
  const showTurn = useCallback(
    (turnId: string) => {
      transcript.current?.show(`turn-${turnId}`, { focus: false });
    },
    [transcript],
  );
  const { turnAtLine: ran, lookUp, clear } = useTurnAtLine(sessionId, showTurn);
  // A new span makes the previous line's response obsolete.
  useEffect(() => {
    if (lockedAnchor !== null) clear();
  }, [lockedAnchor, clear]);
  const jump = useCallback<Jump>(
    (anchor) => {
      // A covered transcript can't take the focus.
      if (!isBelow) close({ restoresFocus: false });
      transcript.current?.show(anchor);
    },
    [isBelow, close, transcript],
  );
  useShowClicked(isBelow, lockedAnchor, toggle);
  useShortcuts({ 'log.leave': () => close() }, { area: box });
  const tools = (
    <>
      <Link
        href={`/agents/${encodeURIComponent(agentId)}/logs`}
        title="Open full log"
        className="hit text-ink-3 hover:text-ink"
      >
        <Icon of={ExternalLink} size={14} strokeWidth={1.75} />
        <span className="sr-only">Open full log</span>
      </Link>
      {isBelow && (
        <button
          type="button"
          aria-label="Close the log"
          title={withKey('Close')}
          onClick={() => close()}
          className="hit text-ink-3 hover:text-ink"
        >
          <Icon of={X} size={14} />
        </button>
      )}
    </>
  );
  const content = (
    <section ref={box} id={id} aria-label="Log" tabIndex={-1} className="flex min-h-0 flex-1 flex-col focus-quiet">
      <AgentLog
        agentId={agentId}
        span={span}
        onLineClick={lookUp}
        takesFocus={takesFocus}
        compact
        level={agent !== null && <LevelMenu agent={agent} />}
        tools={tools}
      />
      <LogLinks {...locked} ran={ran} jump={jump} />
    </section>
  );
  if (!isBelow) return content;
  return (
    <BottomPane
      id={id}
      name="Log"
      storageKey="log-panel-percent"
      usualPercent={38}
      // A pinned request and the log share half of the height, so that the transcript keeps the other half.
      className="group-has-data-pins/page:max-h-[max(120px,calc(25dvh-88px))]"
    >
      {content}
    </BottomPane>
  );
}

/** An element of the transcript with its anchor. */
interface Target {
  anchor: string;
  title: string;
}

interface LinksProps extends Omit<LogPanelProps, 'panel' | 'toggle'> {
  /** The turn and tasks that were running when the chosen line was written. */
  ran: TurnAtLine | null;
  jump: Jump;
}

/** Links from the log to the transcript: the locked turn or task, and whatever was running at the chosen line. */
function LogLinks(props: LinksProps) {
  const { turns, tasks, span, ran, jump, onRelease } = props;
  const names = useTaskNames(tasks);
  const turnTarget = (id: string): Target => {
    const turn = turns.find((one) => one.id === id);
    return { anchor: `turn-${id}`, title: turn === undefined ? 'a turn' : turnTitle(turn, names) };
  };
  const targetOf = (anchor: string): Target => {
    const task = tasks.find((one) => taskAnchor(one) === anchor);
    return task === undefined
      ? turnTarget(anchor.slice('turn-'.length))
      : { anchor, title: `Task ${inQuotes(task.description)}` };
  };
  const locked = props.lockedAnchor === null || span === null ? null : { ...targetOf(props.lockedAnchor), span };
  const response = ran?.response ?? null;
  const isEmpty = locked === null && ran === null;
  return (
    <JumpProvider jump={jump}>
      <div
        className={clsx(
          'flex shrink-0 flex-wrap items-baseline gap-x-5 gap-y-0.5 px-3 text-ink-3 text-xs sm:px-4',
          !isEmpty && 'border-t py-1',
        )}
      >
        {locked !== null && (
          <p className="flex min-w-0 max-w-full items-baseline gap-2">
            <span aria-hidden="true" className="h-3 w-0.5 shrink-0 self-center bg-ink-2" />
            <Place {...locked} />
            <SpanOf span={locked.span} />
            <button
              type="button"
              aria-label={`Release ${nameText(locked.title)}`}
              title="Release"
              onClick={onRelease}
              className="hit shrink-0 self-center hover:text-ink"
            >
              <Icon of={X} size={12} />
            </button>
          </p>
        )}
        {/* Screen readers announce it, too. */}
        <p role="status" className="flex min-w-0 max-w-full flex-wrap items-baseline gap-x-1.5">
          {ran !== null && (
            <Ran
              found={ran}
              turn={response?.turnId == null ? null : turnTarget(response.turnId)}
              tasks={response === null ? [] : tasksAt(tasks, response.taskIds, ran.at)}
              lockedAnchor={locked?.anchor ?? null}
            />
          )}
        </p>
      </div>
    </JumpProvider>
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

function Ran(props: { found: TurnAtLine; turn: Target | null; tasks: readonly Target[]; lockedAnchor: string | null }) {
  const { found, turn, tasks, lockedAnchor } = props;
  const { response, error } = found;
  if (error !== null) return <span className="text-failed">The turn could not be loaded: {error}</span>;
  if (response === null) return null;
  return (
    <>
      <LogTime at={found.at} />
      {turn === null && <span>before the first turn</span>}
      {turn !== null && <span>{response.running ? 'in' : 'after'}</span>}
      {turn !== null && (turn.anchor === lockedAnchor ? <span>that turn</span> : <Place {...turn} />)}
      {tasks.length > 0 && <span>while {tasks.length === 1 ? 'a task' : `${tasks.length} tasks`} ran:</span>}
      {tasks.map((task) => (
        <Place key={task.anchor} {...task} />
      ))}
    </>
  );
}

/** The tasks with these ids that were running at a time. Later runs may have reused an id. */
function tasksAt(tasks: readonly Task[], ids: readonly string[], at: number): Target[] {
  return ids.flatMap((id) => {
    const task = tasks.find((one) => one.id === id && one.startedAt <= at && (one.endedAt ?? at) >= at);
    return task === undefined ? [] : [{ anchor: taskAnchor(task), title: inQuotes(task.description) }];
  });
}

/** A time in the log's format. */
function LogTime({ at }: { at: number }) {
  const [{ isUtc }] = useLogSettings();
  const is12Hour = useTimeFormat()?.is12Hour;
  return (
    <time className="tabular shrink-0 text-2xs">{useClock((now) => formatLogTime(at, isUtc, now, is12Hour))}</time>
  );
}

function Place({ anchor, title }: Target) {
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

/** Elements with their own click action. */
const CONTROLS = 'a, button, input, select, textarea, summary, label, [role="button"], [contenteditable]';

/** With the log beside the transcript, a click on a turn or task moves the log to its time. */
function useShowClicked(isBeside: boolean, lockedAnchor: string | null, toggle: (anchor: string) => void): void {
  const handle = useEffectEvent((anchor: string) => {
    if (anchor !== lockedAnchor) toggle(anchor);
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
