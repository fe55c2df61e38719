'use client';

import type { AgentSummary, SessionAway, SessionSummary } from '@interlude/protocol/read-models';
import { isStalled } from '@interlude/protocol/session-predicates';
import type { ReactNode } from 'react';
import { RefusalsProvider } from '@/components/live/refusals';
import { useIsSilent } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';

/**
 * Provides a session's liveness and the commands that its agent refuses.
 *
 * @param session undefined until its row is loaded
 */
export function SessionLiveness(props: {
  session:
    | Pick<
        SessionSummary,
        'away' | 'evidence' | 'lastHeardAt' | 'lastOccurredAt' | 'observations' | 'state' | 'stateSince'
      >
    | undefined;
  agent: AgentSummary | null;
  children: ReactNode;
}) {
  const { session, agent, children } = props;
  const away = session?.away ?? null;
  // After an exit, calls without a result are no longer running.
  const isSilent = useIsSilent(session?.lastHeardAt ?? null);
  const skewMs = agent?.clockSkewMs ?? 0;
  const lastAt = (session?.lastOccurredAt ?? Number.POSITIVE_INFINITY) - skewMs;
  const exitedAt = session?.state === 'exited' ? Math.min(session.stateSince, lastAt) : null;
  const turn = session?.observations.turn;
  return (
    <LivenessProvider
      stoppedAt={exitedAt ?? away?.lastHeardAt ?? null}
      why={exitedAt === null && away !== null ? awayLabel(away) : 'Exited'}
      isAway={agent?.connection === 'away' && agent.connectedSince !== null}
      silence={session !== undefined && isStalled(session) ? 'stalled' : isSilent ? 'silent' : null}
      skewMs={skewMs}
      turnReportedAt={agent !== null && turn?.value.state === 'running' ? turn.observedAt : null}
      lastSignalAt={session?.lastHeardAt ?? null}
    >
      <RefusalsProvider status={agent?.status ?? null}>{children}</RefusalsProvider>
    </LivenessProvider>
  );
}

/** The reason for silence, in two words. */
function awayLabel({ agentGoesOn, isSilent, isUnreachable }: SessionAway): string {
  if (isUnreachable) return 'Unreachable';
  if (agentGoesOn) return 'Not followed';
  return isSilent ? 'Silent' : 'Runner gone';
}
