'use client';

import { RequestError } from '@/components/live/fetch-json';
import { EmbedNotice } from './embed-notice';

/** In the place of a session until it has been read, and where it can't be. */
export function EmbedWait({ error, retry }: { error: Error | null; retry: () => void }) {
  if (error === null) return <EmbedNotice title="Loading the session…" />;
  const isMissing = error instanceof RequestError && error.status === 404;
  const why = isMissing ? 'There is no such session, or the token of this frame is not for it.' : error.message;
  return <EmbedNotice title="The session can’t be shown" why={why} isFailure retry={retry} />;
}
