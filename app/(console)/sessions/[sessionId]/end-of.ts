import type { AgentSummary, SessionSummary, Turn } from '@/lib/protocol/read-models';

/** Why nobody hears any more what is written here, else null. */
export function endOf(
  session: SessionSummary,
  agent: AgentSummary | null,
  turns: readonly Turn[] | undefined,
): string | null {
  const last = turns?.at(-1)?.items.at(-1);
  const died = session.state === 'failed' && last?.kind === 'notice' && last.code === 'session-ended';
  if (session.state !== 'done' && !died) return null;
  // A runner that came after the end may have taken the session up again; the server takes messages for it, too.
  if (agent?.connection === 'connected' && (agent.connectedSince ?? 0) >= session.stateSince) return null;
  const why = session.stateReason === null ? '' : ` (${session.stateReason})`;
  // The next demo begins another one.
  if (agent?.status?.source === 'demo') return `The agent of this session has ended${why}, and hears nothing more.`;
  return `The agent of this session has ended${why}. It can be written to once its runner resumes it.`;
}
