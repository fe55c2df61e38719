import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { serverContext } from '@/lib/access/server-context';
import { readAgent } from '@/lib/queries/read-agents';
import { LogView } from './log-view';

interface Props {
  params: Promise<{ agentId: string }>;
}

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  // Decoded already, unlike in the page itself.
  return { title: `Log of ${(await params).agentId}` };
}

export default async function AgentLogPage({ params }: Props) {
  const agentId = decodeURIComponent((await params).agentId);
  const { database } = await serverContext();
  const detail = await readAgent(database, agentId);
  if (detail === null) notFound();
  return <LogView key={agentId} initial={detail} />;
}
