import { EmbedShell } from '../../embed-shell';

export default async function EmbedSessionPage({ params }: { params: Promise<{ sessionId: string }> }) {
  return <EmbedShell of={{ session: decodeURIComponent((await params).sessionId) }} />;
}
