import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { serverContext } from '@/lib/access/server-context';
import { readAgent } from '@/lib/queries/read-agents';
import { LogView } from './log-view';
import { readFirstLog } from './read-first-log';

interface Props {
  params: Promise<{ agentId: string }>;
  searchParams: Promise<Record<string, string | string[] | undefined>>;
}

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  // Decoded already, unlike in the page itself.
  return { title: `Log of ${(await params).agentId}` };
}

export default async function AgentLogPage({ params, searchParams }: Props) {
  const agentId = decodeURIComponent((await params).agentId);
  const { database } = await serverContext();
  const [detail, first] = await Promise.all([
    readAgent(database, agentId),
    readFirstLog(database, agentId, await searchParams),
  ]);
  if (detail === null) notFound();
  return <LogView key={agentId} initial={detail} first={first} />;
}
