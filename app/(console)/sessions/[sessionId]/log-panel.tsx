'use client';

import type { LogLine } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ChevronLeft, ExternalLink, X } from 'lucide';
import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from 'react';
import type { Span } from '@/components/time-lock/time-lock';
import { BottomPane } from '@/components/ui/bottom-pane';
import { useStored } from '@/components/ui/browser-storage';
import { Icon } from '@/components/ui/icon';
import { OVERLAY } from '@/components/ui/in-view';
import { Link } from '@/components/ui/link';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useMedia } from '@/components/ui/use-media';
import { useSessionRows, useSessionScope } from './session-scope';

export const levelCode = new CodeOnDemand(async () => (await import('@/components/logs/level-switch')).LevelSwitch);
export const logCode = new CodeOnDemand(async () => (await import('@/components/logs/agent-log')).AgentLog);

/** The log of a session's agent, below the transcript or, on small screens, over it. */
export function LogPanel(props: {
  panel: ReturnType<typeof useLogPanel>;
  span: Span | null;
  onLineClick: (line: LogLine) => void;
  /** The links to the transcript. */
  children: ReactNode;
}) {
  const { panel, span, onLineClick, children } = props;
  const { session, agent } = useSessionRows();
  const { agentId } = session;
  const { id, box, covers, takesFocus, close } = panel;
  useShortcuts({ 'log.leave': () => close() }, { area: box });
  const content = (
    <section ref={box} id={id} aria-label="Log" tabIndex={-1} className="flex min-h-0 flex-1 flex-col outline-none">
      <header className="flex min-h-8 shrink-0 flex-wrap items-center gap-x-4 gap-y-1 px-3 pt-1.5 text-ink-3 text-xs sm:px-4">
        {covers && (
          <button type="button" onClick={() => close()} className="hit flex items-center gap-1 hover:text-ink">
            <Icon of={ChevronLeft} size={15} />
            Back to the transcript
          </button>
        )}
        {agent !== null && (
          <div className={clsx(covers && 'order-last basis-full')}>
            <OnDemand code={levelCode} name="The log level" props={{ agent }} />
          </div>
        )}
        <Link
          href={`/agents/${encodeURIComponent(agentId)}/logs`}
          className="hit ml-auto flex items-center gap-1.5 hover:text-ink"
        >
          <Icon of={ExternalLink} size={13} strokeWidth={1.75} />
          Open full log
        </Link>
        {!covers && (
          <button
            type="button"
            aria-label="Close the log"
            title="Close (Esc)"
            onClick={() => close()}
            className="hit hover:text-ink"
          >
            <Icon of={X} size={14} />
          </button>
        )}
      </header>
      <OnDemand code={logCode} name="The log" props={{ agentId, span, onLineClick, takesFocus, compact: true }} />
      {children}
    </section>
  );
  if (covers)
    return (
      <div {...OVERLAY} className="absolute inset-0 z-20 flex flex-col bg-ground">
        {content}
      </div>
    );
  return (
    <BottomPane id={id} name="Log" storageKey="log-panel-percent" usualPercent={38}>
      {content}
    </BottomPane>
  );
}

/** Screens too small to show both: the log covers the transcript. */
const NO_ROOM = '(max-width: 639.98px), (max-height: 479.98px)';

/**
 * Opens and closes the log by button, with the `l` key and on jumps into it. The browser remembers that the log is
 * open, unless the log covers the transcript.
 */
export function useLogPanel() {
  const id = useId();
  const box = useRef<HTMLElement>(null);
  const { shown: transcript } = useSessionScope();
  const covers = useMedia(NO_ROOM);
  const [stored, store] = useStored('log-panel-open');
  const [covering, setCovering] = useState(false);
  const open = covers ? covering : stored === 'yes';
  /** The element that had the focus before the log took it. */
  const cameFrom = useRef<Element | null>(null);
  const [takesFocus, setTakesFocus] = useState(false);

  const setOpen = useCallback(
    (next: boolean) => {
      setCovering(next);
      if (!covers) store(next ? 'yes' : 'no');
    },
    [covers, store],
  );
  const enter = useCallback(() => {
    cameFrom.current = document.activeElement;
    setTakesFocus(true);
    setOpen(true);
  }, [setOpen]);
  /** `leaves`: doesn't restore the focus. */
  const close = useCallback(
    ({ leaves = false } = {}) => {
      const focused = box.current?.contains(document.activeElement) ?? false;
      setTakesFocus(false);
      setOpen(false);
      // A covered transcript can't take the focus yet.
      if (!focused || leaves) return;
      requestAnimationFrame(() => {
        const { activeElement, body } = document;
        if (activeElement !== body && !box.current?.contains(activeElement)) return;
        const from = cameFrom.current;
        if (from instanceof HTMLElement && from.isConnected && from !== document.body) {
          from.focus({ preventScroll: true });
        } else transcript.current?.focus();
      });
    },
    [setOpen, transcript],
  );
  /** Opens the log for a jump. If the transcript stays visible, it keeps the focus. */
  const show = useCallback(() => {
    if (covers) enter();
    else setOpen(true);
  }, [covers, enter, setOpen]);

  const onKey = () => {
    const panel = box.current;
    if (!open) enter();
    else if (panel?.contains(document.activeElement)) close();
    else {
      cameFrom.current = document.activeElement;
      // The log takes the focus once it has loaded.
      setTakesFocus(true);
      (logElement(panel) ?? panel)?.focus();
    }
  };
  useShortcuts({ 'transcript.log': onKey });

  useEffect(() => {
    const panel = box.current;
    if (open && takesFocus && !panel?.contains(document.activeElement)) panel?.focus();
  }, [open, takesFocus]);

  // If the user moves the focus while the log loads, the log no longer takes it.
  useEffect(() => {
    if (!takesFocus) return;
    const left = ({ target, relatedTarget }: FocusEvent) => {
      const panel = box.current;
      if (!panel?.contains(target as Node) || panel.contains(relatedTarget as Node | null)) return;
      // switching windows doesn't count
      if (document.hasFocus()) setTakesFocus(false);
    };
    document.addEventListener('focusout', left);
    return () => document.removeEventListener('focusout', left);
  }, [takesFocus]);

  return { id, box, open, covers, takesFocus, toggle: open ? () => close() : enter, show, close };
}

function logElement(panel: HTMLElement | null): HTMLElement | null {
  return panel?.querySelector<HTMLElement>('[role="log"]') ?? null;
}
