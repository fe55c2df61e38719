import { EmbedLog } from './embed-log';

export default async function EmbedLogPage({ params }: { params: Promise<{ agentId: string }> }) {
  return <EmbedLog agentId={decodeURIComponent((await params).agentId)} />;
}
