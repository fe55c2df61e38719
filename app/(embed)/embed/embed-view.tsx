'use client';

import { useState } from 'react';
import { EmbedGate } from '@/components/embed/embed-gate';
import { NowProvider } from '@/components/ui/clock';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';

export type EmbedOf = { session: string } | { agentLogs: string } | { fleet: true };

export interface EmbedViewProps {
  of: EmbedOf;
  /** Origins allowed to embed this server. */
  origins: readonly string[];
  nonce: string | undefined;
  /** Milliseconds by which the server's clock is ahead. */
  offsetMs: number;
}

const sessionCode = new CodeOnDemand(async () => (await import('./sessions/[sessionId]/embed-session')).EmbedSession);
const logCode = new CodeOnDemand(async () => (await import('./agents/[agentId]/logs/embed-log')).EmbedLog);
const fleetCode = new CodeOnDemand(async () => (await import('./fleet/embed-fleet')).EmbedFleet);

/** An embed. Its code loads while it waits for a token. */
export function EmbedView({ of, origins, nonce, offsetMs }: EmbedViewProps) {
  const [now] = useState(() => Date.now() + offsetMs);
  usePreload('session' in of ? sessionCode : 'agentLogs' in of ? logCode : fleetCode);
  return (
    <NowProvider renderedAt={now}>
      <EmbedGate origins={origins} offsetMs={offsetMs}>
        {'session' in of ? (
          <OnDemand code={sessionCode} name="The session" props={{ sessionId: of.session, nonce }} />
        ) : 'agentLogs' in of ? (
          <OnDemand code={logCode} name="The log" props={{ agentId: of.agentLogs }} />
        ) : (
          <OnDemand code={fleetCode} name="The list of sessions" props={{}} />
        )}
      </EmbedGate>
    </NowProvider>
  );
}
