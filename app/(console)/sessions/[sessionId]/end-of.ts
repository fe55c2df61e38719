import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';

/** Why nobody hears any more what is written here, else null. */
export function endOf(session: SessionSummary, agent: AgentSummary | null): string | null {
  const end = session.observations.process;
  if (end === undefined) return null;
  // A runner that came after the end may have taken the session up again; the server takes messages for it, too.
  if (agent?.connection === 'connected' && (agent.connectedSince ?? 0) >= end.observedAt) return null;
  const why = session.stateReason === null ? '' : `: ${session.stateReason}`;
  // The next demo begins another one.
  if (agent?.status?.source === 'demo') return `This session accepts no more messages. Its agent has ended${why}.`;
  return `This session can be written to once its runner resumes it. Its agent has ended${why}.`;
}
