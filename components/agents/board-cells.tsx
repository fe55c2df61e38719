import type { AgentSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { glyphOf, STATE_WORD } from '@/components/sessions/session-words';
import { Glyph } from '@/components/ui/glyph';
import { missingOf, standingCounts, urgentStanding } from './board-agent';

export function Cell({
  isHead = false,
  className,
  children,
}: {
  isHead?: boolean;
  className?: string;
  children: ReactNode;
}) {
  return (
    <div role={isHead ? 'rowheader' : 'cell'} className={clsx('wrap-break-word min-w-0', className)}>
      {children}
    </div>
  );
}

export function None() {
  return (
    <span className="text-ink-3">
      <span aria-hidden="true">–</span>
      <span className="sr-only">not said</span>
    </span>
  );
}

/** None of them is no news. */
export function Count({ of }: { of: number }) {
  return <span className={of === 0 ? 'text-ink-3' : undefined}>{of.toLocaleString('en')}</span>;
}

/** The most urgent state of an agent's sessions, and how many of them are in it. */
export function AgentState({ agent }: { agent: AgentSummary }) {
  const { sessionCount } = agent;
  const state = urgentStanding(agent);
  if (state === null) return <span className="text-ink-3">no session</span>;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(state)} className="relative top-[1.5px]" />
      <span className="min-w-0 truncate">{STATE_WORD[state]}</span>
      {sessionCount > 1 && (
        <span className="tabular shrink-0 text-ink-3">
          {`${standingCounts(agent)[state].toLocaleString('en')} of ${sessionCount.toLocaleString('en')}`}
        </span>
      )}
    </span>
  );
}

export function Ledger({ agent }: { agent: AgentSummary }) {
  if (missingOf(agent) === 0) return <span className="text-ink-3">nothing missing</span>;
  const parts = [
    agent.lostCount > 0 && `${agent.lostCount} lost`,
    agent.quarantinedCount > agent.parkedCount && `${agent.quarantinedCount - agent.parkedCount} in quarantine`,
    agent.parkedCount > 0 && `${agent.parkedCount} parked`,
  ];
  return <span className="text-waiting">{parts.filter(Boolean).join(' · ')}</span>;
}
