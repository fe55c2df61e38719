import type { Metadata } from 'next';
import { serverContext } from '@/lib/access/server-context';
import { readAgents } from '@/lib/queries/read-agents';
import { PageFrame } from '../page-frame';
import { AgentsView } from './agents-view';

export const metadata: Metadata = { title: 'Agents' };

export default async function AgentsPage() {
  const { database } = await serverContext();
  return (
    <PageFrame title="Agents" back={{ href: '/', label: 'Sessions' }}>
      <AgentsView initial={await readAgents(database)} />
    </PageFrame>
  );
}
