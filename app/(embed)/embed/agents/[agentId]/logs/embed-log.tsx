'use client';

import { useMayAct } from '@/components/access/may-act';
import { useAgentSummary } from '@/components/agents/use-agents';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { AgentLog } from '@/components/logs/agent-log';
import { LevelSwitch } from '@/components/logs/level-switch';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

export function EmbedLog({ agentId }: { agentId: string }) {
  const agent = useAgentSummary(agentId);
  const mayAct = useMayAct();
  return (
    <main className="flex h-full min-h-0 flex-col">
      <header className="flex shrink-0 items-start gap-3 px-3 pt-2 pb-1 sm:px-4">
        <div className="min-w-0 flex-1">
          <h1 className="truncate font-medium text-md" title={nameText(agentId)}>
            <Name text={agentId} /> <span className="font-normal text-ink-3">log</span>
          </h1>
          {mayAct && agent !== null && <LevelSwitch agent={agent} />}
        </div>
        <div className="mt-[3px]">
          <ConnectionBadge />
        </div>
      </header>
      <AgentLog agentId={agentId} />
    </main>
  );
}
