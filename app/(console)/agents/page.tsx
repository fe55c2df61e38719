import type { Metadata } from 'next';
import { AGENTS_IN_PAGE, readAgents } from '@/lib/queries/read-agents';
import { PageFrame } from '../page-frame';
import { readInTurn } from '../read-in-turn';
import { AgentsView } from './agents-view';

export const metadata: Metadata = { title: 'Agents' };

export default async function AgentsPage() {
  const agents = await readInTurn((database) => readAgents(database, { after: null, limit: AGENTS_IN_PAGE }));
  return (
    <PageFrame title="Agents" back={{ href: '/', label: 'Sessions' }}>
      <AgentsView initial={agents} />
    </PageFrame>
  );
}
