'use client';

import { useMemo } from 'react';
import { AgentTable } from '@/components/agents/agent-list';
import { useFleet, useStart } from '@/components/live/use-fleet';
import { glyphOf, STANDING_WORD, STANDINGS, standingOf } from '@/components/sessions/session-words';
import { Glyph } from '@/components/ui/glyph';
import type { AgentList, SessionSummary } from '@/lib/protocol/read-models';

/** The agents, each with the most urgent state of its sessions. */
export function AgentsView({ initial }: { initial: AgentList }) {
  useStart((fleet) => fleet.takeAgents(initial));
  const sessions = useFleet(({ listedSessions }) => listedSessions?.sessions);
  const byAgent = useMemo(() => sessionsByAgent(sessions ?? []), [sessions]);
  return (
    <AgentTable
      renderState={({ id, sessionCount }) => <AgentState sessions={byAgent.get(id) ?? NONE} count={sessionCount} />}
    />
  );
}

const NONE: readonly SessionSummary[] = [];

function sessionsByAgent(sessions: readonly SessionSummary[]): Map<string, SessionSummary[]> {
  const byAgent = new Map<string, SessionSummary[]>();
  for (const session of sessions) {
    const own = byAgent.get(session.agentId);
    if (own) own.push(session);
    else byAgent.set(session.agentId, [session]);
  }
  return byAgent;
}

/** The sessions that are loaded are the most urgent ones: how many are in that state is said only where all are. */
function AgentState({ sessions, count: all }: { sessions: readonly SessionSummary[]; count: number }) {
  const standing = STANDINGS.find((candidate) => sessions.some((session) => standingOf(session) === candidate));
  if (standing === undefined) return null;
  const count = sessions.filter((session) => standingOf(session) === standing).length;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(standing)} className="relative top-[1.5px]" />
      {STANDING_WORD[standing]}
      {all > 1 && sessions.length >= all && <span className="tabular text-ink-3">{`${count} of ${all}`}</span>}
    </span>
  );
}
