'use client';

import { useMayAct } from '@/components/access/may-act';
import { useAgentSummary } from '@/components/agents/use-agents';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { AgentLog } from '@/components/logs/agent-log';
import { LevelMenu } from '@/components/logs/level-menu';
import { LivenessProvider } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

export function EmbedLog({ agentId }: { agentId: string }) {
  const agent = useAgentSummary(agentId);
  const mayAct = useMayAct();
  return (
    <main className="flex h-full min-h-0 flex-col">
      <header className="flex h-10 shrink-0 items-center gap-3 px-3 sm:px-4">
        <h1 className="min-w-0 flex-1 truncate font-medium text-md" title={nameText(agentId)}>
          <Name text={agentId} /> <span className="font-normal text-ink-3">log</span>
        </h1>
        <ConnectionBadge />
      </header>
      <LivenessProvider skewMs={agent?.clockSkewMs}>
        <AgentLog agentId={agentId} level={mayAct && agent !== null && <LevelMenu agent={agent} />} />
      </LivenessProvider>
    </main>
  );
}
