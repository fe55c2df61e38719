import { EmbedShell } from '@/app/(embed)/embed/embed-shell';

export default async function EmbedLogPage({ params }: { params: Promise<{ agentId: string }> }) {
  return <EmbedShell of={{ agentLogs: decodeURIComponent((await params).agentId) }} />;
}
