'use client';

import { useState } from 'react';
import { useFleet } from '@/components/live/use-fleet';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

const requestsCode = new CodeOnDemand(async () => (await import('../../open-requests')).AgentRequests);

/** The agent's open requests. Stays for the outcome of the last one. */
export function RequestsOfAgent({ agentId }: { agentId: string }) {
  const count = useFleet(({ sessions }) =>
    (sessions.list(agentId)?.rows ?? []).reduce((sum, { pendingRequestCount }) => sum + pendingRequestCount, 0),
  );
  const [isShown, show] = useState(count > 0);
  if (count > 0 && !isShown) show(true);
  if (!isShown) return null;
  return (
    <section id="requests" className="min-h-40">
      <h2 className="mb-2 flex gap-1.5 font-medium text-ink-2 text-xs">
        Requests <span className="tabular font-normal text-ink-3">{count}</span>
      </h2>
      <OnDemand code={requestsCode} name="The requests" props={{ agentId, count }} />
    </section>
  );
}
