'use client';

import type { ReactNode } from 'react';
import { RefusalsProvider } from '@/components/live/refusals';
import { goneWord } from '@/components/sessions/session-words';
import { LivenessProvider } from '@/components/ui/liveness';
import { useSessionRows } from './session-scope';

/** Tells everything on a session's page whether what it shows still goes on, and what its agent does not act on. */
export function SessionLiveness({ children }: { children: ReactNode }) {
  const { session, agent } = useSessionRows();
  return (
    <LivenessProvider
      stoppedAt={session.away?.lastHeardAt ?? null}
      why={session.away === null ? '' : goneWord(session.away)}
      isAway={agent?.connection === 'away' && agent.connectedSince !== null}
      heardAt={session.lastHeardAt}
    >
      <RefusalsProvider status={agent?.status ?? null}>{children}</RefusalsProvider>
    </LivenessProvider>
  );
}
