'use client';

import type { AgentDetail } from '@interlude/protocol/read-models';
import { BackLink } from '@/app/(console)/back-link';
import { SeenWhileShown } from '@/components/agents/seen-while-shown';
import { useAgent } from '@/components/agents/use-agents';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { AgentLog } from '@/components/logs/agent-log';
import { LevelMenu } from '@/components/logs/level-menu';
import type { FirstLog } from '@/components/logs/log-query';
import { LivenessProvider } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

export function LogView({ initial, first }: { initial: AgentDetail; first: FirstLog | null }) {
  const { detail } = useAgent(initial, false);
  const { agent } = detail;
  const href = `/agents/${encodeURIComponent(agent.id)}`;
  return (
    <main className="flex h-full min-h-0 flex-col">
      <header className="flex h-12 shrink-0 items-center gap-3 px-3 sm:px-4">
        <BackLink href={href} label="Agent" />
        <h1 className="min-w-0 flex-1 truncate font-medium text-md" title={nameText(agent.id)}>
          <Name text={agent.id} /> <span className="font-normal text-ink-3">log</span>
        </h1>
        <div className="lg:not-icons:hidden">
          <ConnectionBadge />
        </div>
      </header>
      <SeenWhileShown agent={agent} insights={detail.insights}>
        <LivenessProvider skewMs={agent.clockSkewMs}>
          <AgentLog agentId={agent.id} first={first} level={<LevelMenu agent={agent} />} />
        </LivenessProvider>
      </SeenWhileShown>
    </main>
  );
}
