import type { Metadata } from 'next';
import { readAgents } from '@/lib/queries/read-agents';
import { PageFrame } from '../page-frame';
import { readInTurn } from '../read-in-turn';
import { AgentsView } from './agents-view';

export const metadata: Metadata = { title: 'Agents' };

export default async function AgentsPage() {
  return (
    <PageFrame title="Agents" back={{ href: '/', label: 'Sessions' }}>
      <AgentsView initial={await readInTurn(readAgents)} />
    </PageFrame>
  );
}
