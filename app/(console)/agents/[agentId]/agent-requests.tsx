'use client';

import { useState } from 'react';
import { useFleet } from '@/components/live/use-fleet';
import { requestRevision } from '@/components/requests/request-revision';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

const requestsCode = new CodeOnDemand(async () => (await import('../../open-requests')).AgentRequests);

/** The agent's open requests. Stays for the outcome of the last one. */
export function RequestsOfAgent({ agentId }: { agentId: string }) {
  const revision = useFleet(({ agents, sessions }) => {
    const agent = agents.get(agentId);
    const waiting = agent?.sessionStates['needs-input'] ?? 0;
    // Not all of its sessions may be loaded.
    const loaded = (sessions.list(agentId)?.rows ?? []).map(requestRevision).filter(Boolean);
    return waiting + loaded.length === 0 ? '' : [waiting, agent?.stateSince, ...loaded].join(' ');
  });
  const [isShown, show] = useState(revision !== '');
  if (revision !== '' && !isShown) show(true);
  if (!isShown) return null;
  return <OnDemand code={requestsCode} name="The requests" props={{ agentId, revision }} />;
}
