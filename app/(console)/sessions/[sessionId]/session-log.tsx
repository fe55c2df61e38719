'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { type ReactNode, useCallback, useEffect, useEffectEvent, useMemo } from 'react';
import { flushSync } from 'react-dom';
import { taskAnchor } from '@/components/tasks/task-words';
import { useTimeLock, useTurnAtLine } from '@/components/time-lock/time-lock';
import { turnTitle } from '@/components/transcript/turn-cause';
import { type Jump, JumpProvider } from '@/components/ui/jump';
import { usePreload } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { inQuotes } from '@/components/ui/verbatim';
import { LogContext, type Named } from './log-context';
import { LogPanel, levelCode, logCode } from './log-panel';
import { useSessionScope, useTranscriptState } from './session-scope';
import type { useLogPanel } from './use-log-panel';
import { useTaskNames } from './use-named-tasks';

const NO_TURNS: readonly Turn[] = [];

/** The log beside a session's transcript, and what ties the two together by time. */
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

  // While the log is read, the focus stays in it; where it covers the transcript, a link in it leads there.
  const showTurn = useCallback(
    (turnId: string) => {
      transcript.current?.show(`turn-${turnId}`, { focus: false });
    },
    [transcript],
  );
  const { turnAtLine: ran, lookUp: ask, clear: forget } = useTurnAtLine(sessionId, showTurn);
  // What ran when a line was written that is out of sight now is of no more use.
  const onHold = useCallback(() => {
    forget();
    show();
  }, [forget, show]);
  const { lock, held, span, release } = useTimeLock({ turns, tasks, onHold });
  const jump = useCallback<Jump>(
    (anchor) => {
      // What is covered can take the focus only when it no longer is.
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

/** The cards of these tasks; where an id was used again, of the run that ran then. */
function tasksAt(tasks: readonly Task[], ids: readonly string[], at: number): Named[] {
  return ids.flatMap((id) => {
    const task = tasks.find((one) => one.id === id && one.startedAt <= at && (one.endedAt ?? at) >= at);
    return task === undefined ? [] : [{ anchor: taskAnchor(task), title: inQuotes(task.description) }];
  });
}

/** Of the turn or the task's card that an element stands in. */
function anchorAt(element: Element | null): string | null {
  return element?.closest('[id^="task-"], [data-turn]')?.id || null;
}

/** What a click means something else on. */
const CONTROLS = 'a, button, input, select, textarea, summary, label, [role="button"], [contenteditable]';

/** While the log stands beside it, a click on a turn or a task brings the log there. */
function useShowClicked(isBeside: boolean, held: string | null, toggle: (anchor: string) => void): void {
  const handle = useEffectEvent((anchor: string) => {
    if (anchor !== held) toggle(anchor);
  });
  useEffect(() => {
    if (!isBeside) return;
    const listen = ({ target, defaultPrevented }: MouseEvent) => {
      if (defaultPrevented || !(target instanceof Element) || target.closest(CONTROLS)) return;
      // who selects text is reading
      if (document.getSelection()?.isCollapsed === false) return;
      const anchor = anchorAt(target);
      if (anchor !== null) handle(anchor);
    };
    document.addEventListener('click', listen);
    return () => document.removeEventListener('click', listen);
  }, [isBeside]);
}
