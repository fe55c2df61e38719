'use client';

import { AgentTable } from '@/components/agents/agent-list';
import { glyphOf, STANDING_WORD, STANDINGS, standingOf } from '@/components/sessions/session-words';
import { useSessions } from '@/components/sessions/use-sessions';
import { Glyph } from '@/components/ui/glyph';
import type { AgentList, SessionSummary } from '@/lib/protocol/read-models';

/** The agents, each with the most urgent state of its sessions. */
export function AgentsView({ initial }: { initial: AgentList }) {
  const sessions = useSessions().data?.sessions ?? [];
  return (
    <AgentTable initial={initial} renderState={(agentId) => <AgentState agentId={agentId} sessions={sessions} />} />
  );
}

function AgentState({ agentId, sessions }: { agentId: string; sessions: readonly SessionSummary[] }) {
  const own = sessions.filter((session) => session.agentId === agentId);
  const standing = STANDINGS.find((candidate) => own.some((session) => standingOf(session) === candidate));
  if (standing === undefined) return null;
  const count = own.filter((session) => standingOf(session) === standing).length;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(standing)} className="relative top-[1.5px]" />
      {STANDING_WORD[standing]}
      {own.length > 1 && <span className="tabular text-ink-3">{`${count} of ${own.length}`}</span>}
    </span>
  );
}
