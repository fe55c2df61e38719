'use client';

import type { AgentDetail } from '@interlude/protocol/read-models';
import { BackLink } from '@/app/(console)/back-link';
import { SeenWhileShown } from '@/components/agents/seen-while-shown';
import { useAgent } from '@/components/agents/use-agents';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { AgentLog } from '@/components/logs/agent-log';
import { LevelSwitch } from '@/components/logs/level-switch';
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
      <header className="flex shrink-0 items-start gap-3 px-3 pt-2.5 pb-1 sm:px-4">
        <BackLink href={href} label="Agent" className="mt-[2px]" />
        <div className="min-w-0 flex-1">
          <h1 className="truncate font-medium text-md" title={nameText(agent.id)}>
            <Name text={agent.id} /> <span className="font-normal text-ink-3">log</span>
          </h1>
          <LevelSwitch agent={agent} />
        </div>
        <div className="mt-[3px] lg:not-icons:hidden">
          <ConnectionBadge />
        </div>
      </header>
      <SeenWhileShown agent={agent} insights={detail.insights}>
        <LivenessProvider skewMs={agent.clockSkewMs}>
          <AgentLog agentId={agent.id} first={first} />
        </LivenessProvider>
      </SeenWhileShown>
    </main>
  );
}
