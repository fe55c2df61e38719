'use client';

import type { LogLine } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ChevronLeft, ExternalLink, X } from 'lucide';
import type { ReactNode } from 'react';
import type { Span } from '@/components/time-lock/time-lock';
import { BottomPane } from '@/components/ui/bottom-pane';
import { Icon } from '@/components/ui/icon';
import { OVERLAY } from '@/components/ui/in-view';
import { Link } from '@/components/ui/link';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useSessionRows } from './session-scope';
import type { useLogPanel } from './use-log-panel';

export const levelCode = new CodeOnDemand(async () => (await import('@/components/logs/level-switch')).LevelSwitch);
export const logCode = new CodeOnDemand(async () => (await import('@/components/logs/agent-log')).AgentLog);

/** The log of a session's agent, beneath the transcript or, where there is no room for both, in its place. */
export function LogPanel(props: {
  panel: ReturnType<typeof useLogPanel>;
  span: Span | null;
  onLineClick: (line: LogLine) => void;
  /** What the log is brought to, and what ran when a line was written. */
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
            <OnDemand code={levelCode} name="The level of the log" props={{ agent }} />
          </div>
        )}
        <Link
          href={`/agents/${encodeURIComponent(agentId)}/logs`}
          className="hit ml-auto flex items-center gap-1.5 hover:text-ink"
        >
          <Icon of={ExternalLink} size={13} strokeWidth={1.75} />
          Open the whole log
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
