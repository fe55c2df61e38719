'use client';

import { AgentPage } from '@/components/agents/agent-page';
import { SessionRow } from '@/components/sessions/session-row';
import type { AgentDetail } from '@/lib/protocol/read-models';

export function AgentView({ initial }: { initial: AgentDetail }) {
  return <AgentPage initial={initial} renderSession={(session) => <SessionRow session={session} current={false} />} />;
}
