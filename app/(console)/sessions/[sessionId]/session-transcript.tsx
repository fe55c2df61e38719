'use client';

import { useEffect, useMemo } from 'react';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { isShown, withOutgoing } from '@/components/composer/with-outgoing';
import { useSelected } from '@/components/live/use-folded';
import { DetachedRequests } from '@/components/transcript/call-state';
import type { ServerMarkup } from '@/components/transcript/server-markup';
import { Transcript } from '@/components/transcript/transcript';
import { TranscriptWait } from '@/components/transcript/transcript-wait';
import { useSessionScope, useTranscriptState } from './session-scope';
import { SessionSlots } from './session-slots';

export interface SessionTranscriptProps {
  nonce: string | undefined;
  sentCount: number;
  painted: ServerMarkup | null;
}

/** The transcript with what this browser is sending at its end; or why it is not there. */
export function SessionTranscript({ nonce, sentCount, painted }: SessionTranscriptProps) {
  const { sessionId, transcript, query, shown: handle } = useSessionScope();
  const state = useTranscriptState((state) => state);
  const older = useSelected(transcript, (store) => store.older);
  const { messages, queue } = useOutgoing(sessionId);
  const shown = useMemo(() => state && withOutgoing(state, messages), [state, messages]);

  // What the transcript shows has arrived: nobody needs to send it again.
  const turns = state?.turns;
  useEffect(() => {
    if (turns !== undefined && messages.length > 0) queue?.discardShown((message) => isShown(turns, message));
  }, [queue, turns, messages]);

  const readAgain = () => void query.refetch();
  if (shown === undefined) {
    const onCome = () => handle.current?.focus();
    return (
      <TranscriptWait error={query.failureReason} isLoading={query.isFetching} retry={readAgain} onCome={onCome} />
    );
  }
  return (
    <>
      {query.isError && (
        <p className="flex gap-3 px-5 py-2 text-failed text-xs">
          {query.error.message}
          <button type="button" onClick={readAgain} className="underline">
            Try again
          </button>
        </p>
      )}
      <SessionSlots>
        <DetachedRequests turns={shown.turns}>
          <Transcript
            state={shown}
            nonce={nonce}
            sentCount={sentCount}
            loadOlder={transcript.loadOlder}
            loadingOlder={older.isLoading}
            olderError={older.error}
            seek={transcript.seek}
            handle={handle}
            painted={painted}
          />
        </DetachedRequests>
      </SessionSlots>
    </>
  );
}
