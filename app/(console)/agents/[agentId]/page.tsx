import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { PageFrame } from '@/app/(console)/page-frame';
import { readInTurn } from '@/app/(console)/read-in-turn';
import { AgentPage } from '@/components/agents/agent-page';
import { Link } from '@/components/ui/link';
import { nameText } from '@/components/ui/verbatim';
import { readAgent } from '@/lib/server/queries/read-agents';
import { RequestsOfAgent } from './agent-requests';

interface Props {
  params: Promise<{ agentId: string }>;
}

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  // Next decodes the parameter here, but not for the page itself.
  return { title: `Agent ${nameText((await params).agentId)}` };
}

export default async function AgentDetailPage({ params }: Props) {
  const agentId = decodeURIComponent((await params).agentId);
  const detail = await readInTurn((scope) => readAgent(scope, agentId));
  if (detail === null) notFound();
  return (
    <PageFrame
      title={agentId}
      back={{ href: '/agents', label: 'Agents' }}
      actions={
        <Link
          href={`/agents/${encodeURIComponent(agentId)}/logs`}
          className="hit flex h-7 items-center rounded border border-line-strong px-3 text-ink-2 text-xs hover:border-ink hover:text-ink"
        >
          Log
        </Link>
      }
      wide
    >
      <AgentPage key={agentId} initial={detail} requests={<RequestsOfAgent agentId={agentId} />} />
    </PageFrame>
  );
}
