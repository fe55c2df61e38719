import { pageNonce } from '@/app/page-nonce';
import { EmbedSession } from './embed-session';

export default async function EmbedSessionPage({ params }: { params: Promise<{ sessionId: string }> }) {
  const sessionId = decodeURIComponent((await params).sessionId);
  return <EmbedSession sessionId={sessionId} nonce={await pageNonce()} />;
}
