import { EmbedShell } from '@/app/(embed)/embed/embed-shell';

export default async function EmbedSessionPage({ params }: { params: Promise<{ sessionId: string }> }) {
  return <EmbedShell of={{ session: decodeURIComponent((await params).sessionId) }} />;
}
