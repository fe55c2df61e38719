'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext } from 'react';
import { anchorAt, useTimeLock } from '@/components/time-lock/time-lock';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { useTranscriptState } from './session-scope';
import type { useLogPanel } from './use-log-panel';

const NO_TURNS: readonly Turn[] = [];

const panelCode = new CodeOnDemand(async () => (await import('./log-panel')).LogPanel);

/** The log while it is open. A context, because it renders for every delta, and the page around it doesn't. */
const LogContext = createContext<ReactNode>(null);

export function LogPlace() {
  return useContext(LogContext);
}

/** The log of a session's agent, linked to its transcript by time. */
export function SessionLog(props: {
  panel: ReturnType<typeof useLogPanel>;
  tasks: readonly Task[];
  /** Contains `LogPlace` where the log is shown. */
  children: ReactNode;
}) {
  const { panel, tasks, children } = props;
  usePreload(panelCode);
  const turns = useTranscriptState((state) => state?.turns) ?? NO_TURNS;
  const { lock, lockedAnchor, span, release: onRelease } = useTimeLock({ turns, tasks, onLock: panel.show });
  useShortcuts({
    'transcript.in-log': () => {
      const anchor = anchorAt(document.activeElement);
      if (anchor === null) return false;
      lock.toggle(anchor);
    },
  });

  return (
    <TimeLockProvider value={lock}>
      <LogContext
        value={
          panel.open && (
            <OnDemand
              code={panelCode}
              name="The log"
              props={{ panel, turns, tasks, lockedAnchor, span, onRelease, toggle: lock.toggle }}
            />
          )
        }
      >
        {children}
      </LogContext>
    </TimeLockProvider>
  );
}
