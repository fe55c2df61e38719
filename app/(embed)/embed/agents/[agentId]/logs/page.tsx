import { EmbedShell } from '../../../embed-shell';

export default async function EmbedLogPage({ params }: { params: Promise<{ agentId: string }> }) {
  return <EmbedShell of={{ agentLogs: decodeURIComponent((await params).agentId) }} />;
}
