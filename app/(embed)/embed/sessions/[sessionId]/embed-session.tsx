'use client';

import { useQuery } from '@tanstack/react-query';
import { SessionStores } from '@/app/(console)/sessions/[sessionId]/session-stores';
import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { EmbedWait } from '@/components/embed/embed-notice';
import { EmbedPanes } from './embed-panes';
import { readStart } from './read-start';

/** A session in a frame: what its page on the dashboard begins with is read by the frame itself. */
export function EmbedSession({ sessionId, nonce }: { sessionId: string; nonce: string | undefined }) {
  const mayAct = useMayAct();
  const { data, error, refetch } = useQuery({
    queryKey: ['session-start', sessionId],
    queryFn: ({ signal }) => readStart(sessionId, signal),
  });
  if (data === undefined) return <EmbedWait error={error} retry={() => void refetch()} />;
  return (
    <SessionStores sessionId={sessionId} initial={data}>
      {(parts) => (
        <>
          {mayAct && <OutgoingWake />}
          <EmbedPanes nonce={nonce} {...parts} />
        </>
      )}
    </SessionStores>
  );
}
