'use client';

import { useState } from 'react';
import { useFleet } from '@/components/live/use-fleet';
import { plural } from '@/components/ui/duration';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

const requestsCode = new CodeOnDemand(async () => (await import('../../open-requests')).AgentRequests);

/** The agent's open requests, after a press: their heights are unknown, and they would move the page as they load. */
export function RequestsOfAgent({ agentId }: { agentId: string }) {
  const waiting = useFleet(({ agents }) => agents.get(agentId)?.sessionStates['needs-input'] ?? 0);
  const [isOpen, setOpen] = useState(false);
  if (isOpen) return <OnDemand code={requestsCode} name="The requests" props={{ agentId }} />;
  if (waiting === 0) return null;
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <span>{plural(waiting, 'session')} waiting for an answer</span>
      <button
        type="button"
        onClick={() => setOpen(true)}
        className="min-h-7 pointer-coarse:min-h-11 rounded bg-ink px-2.5 font-medium text-ground hover:bg-ink-2"
      >
        Answer here
      </button>
    </p>
  );
}
