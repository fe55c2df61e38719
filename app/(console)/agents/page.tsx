import type { Metadata } from 'next';
import { AgentBoard } from '@/components/agents/agent-board';
import { AGENTS_IN_PAGE, readAgents } from '@/lib/server/queries/read-agents';
import { PageFrame } from '../page-frame';
import { readInTurn } from '../read-in-turn';

export const metadata: Metadata = { title: 'Agents' };

export default async function AgentsPage() {
  const agents = await readInTurn((scope) => readAgents(scope, { after: null, limit: AGENTS_IN_PAGE }));
  return (
    <PageFrame title="Agents" wide>
      <AgentBoard initial={agents} />
    </PageFrame>
  );
}
