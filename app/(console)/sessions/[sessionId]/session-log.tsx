'use client';

import type { Task, Turn } from '@interlude/protocol/read-models';
import { type ReactNode, useEffect, useEffectEvent } from 'react';
import { useTimeLock } from '@/components/time-lock/time-lock';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { useTranscriptState } from './session-scope';
import type { useLogPanel } from './use-log-panel';

const NO_TURNS: readonly Turn[] = [];

const panelCode = new CodeOnDemand(async () => (await import('./log-panel')).LogPanel);

/** The log of a session's agent, linked to its transcript by time. */
export function SessionLog(props: {
  panel: ReturnType<typeof useLogPanel>;
  tasks: readonly Task[];
  /** Renders the page around the log, which is null while it is closed. */
  children: (log: ReactNode) => ReactNode;
}) {
  const { panel, tasks, children } = props;
  usePreload(panelCode);
  const { isBelow, show } = panel;
  const turns = useTranscriptState((state) => state?.turns) ?? NO_TURNS;
  const { lock, lockedAnchor, span, release: onRelease } = useTimeLock({ turns, tasks, onLock: show });
  useShortcuts({
    'transcript.in-log': () => {
      const anchor = anchorAt(document.activeElement);
      if (anchor === null) return false;
      lock.toggle(anchor);
    },
  });
  useShowClicked(panel.open && isBelow, lockedAnchor, lock.toggle);

  return (
    <TimeLockProvider value={lock}>
      {children(
        panel.open && (
          <OnDemand code={panelCode} name="The log" props={{ panel, turns, tasks, lockedAnchor, span, onRelease }} />
        ),
      )}
    </TimeLockProvider>
  );
}

/** Anchor of the turn or task card that contains an element. */
function anchorAt(element: Element | null): string | null {
  return element?.closest('[id^="task-"], [data-turn]')?.id || null;
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
