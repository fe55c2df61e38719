'use client';

import type { Position } from '@interlude/protocol/position';
import { AcceptReply, WaiveReply } from '@/components/obligations/settle-reply';
import { useSessionObligations } from '@/components/obligations/use-obligations';
import { Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';

/** A reply that is owed for too long: to what, what may have been the reply, and “No reply needed”. */
export function OwedHere(props: { sessionId: string; messageId: string; updatedPosition: Position }) {
  const { sessionId, messageId, updatedPosition } = props;
  const { data, error, refetch } = useSessionObligations({ id: sessionId, updatedPosition });
  if (data === undefined) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        {error === null ? 'Loading…' : `What is owed could not be loaded: ${error.message}`}{' '}
        {error !== null && (
          <button type="button" onClick={() => void refetch()} className="underline hover:text-ink">
            Try again
          </button>
        )}
      </p>
    );
  }
  const owed = data.owed.find((one) => one.messageId === messageId);
  if (owed === undefined) return <p className="py-2 text-ink-3 text-xs">Nothing is owed here any more.</p>;
  return (
    <div className="flex max-w-prose flex-col gap-2 py-2">
      <p dir="auto" className="wrap-break-word line-clamp-6 text-xs">
        <Words text={toPlainText(owed.text)} />
      </p>
      {owed.candidate !== null && (
        <AcceptReply sessionId={sessionId} messageId={messageId} candidate={owed.candidate} />
      )}
      <WaiveReply sessionId={sessionId} messageId={messageId} />
    </div>
  );
}
