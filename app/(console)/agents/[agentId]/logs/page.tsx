import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { readInTurn } from '@/app/(console)/read-in-turn';
import { nameText } from '@/components/ui/verbatim';
import { readAgent } from '@/lib/server/queries/read-agents';
import { LogView } from './log-view';
import { readFirstLog } from './read-first-log';

interface Props {
  params: Promise<{ agentId: string }>;
  searchParams: Promise<Record<string, string | string[] | undefined>>;
}

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  // Next decodes the parameter here, but not for the page itself.
  return { title: `Log of ${nameText((await params).agentId)}` };
}

export default async function AgentLogPage({ params, searchParams }: Props) {
  const agentId = decodeURIComponent((await params).agentId);
  const search = await searchParams;
  const [detail, first] = await readInTurn((scope) =>
    Promise.all([readAgent(scope, agentId), readFirstLog(scope, agentId, search)]),
  );
  if (detail === null) notFound();
  return <LogView key={agentId} initial={detail} first={first} />;
}
