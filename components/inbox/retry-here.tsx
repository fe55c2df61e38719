'use client';

import type { Sending } from '@interlude/protocol/commands';
import type { Position } from '@interlude/protocol/position';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { forEachLimited } from '@/components/live/for-each-limited';
import { IdempotentPost } from '@/components/live/idempotent-post';
import { AcceptReply, WaiveReply } from '@/components/obligations/settle-reply';
import { useSessionObligations } from '@/components/obligations/use-obligations';
import { SendHere } from '@/components/sessions/send-here';
import { plural } from '@/components/ui/duration';
import { Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';

const NOT_KNOWN = 'The last message is not in the newest turns.';
const TOO_LONG = 'The last message is too long to resend.';

/** Number of turns searched for the last user message. */
const TURNS = 20;

/**
 * Sends the last user message of a failed session again, after the user has reviewed it.
 *
 * @param onSent called with the delivery; the session then no longer counts as failed, and its item disappears
 */
export function RetryHere({ sessionId, onSent }: { sessionId: string; onSent: (sending: Sending) => void }) {
  const { data, error, isPending } = useQuery({
    queryKey: ['last-user-message', sessionId],
    queryFn: ({ signal }) => readLastMessage(sessionId, signal),
    gcTime: 0,
  });
  if (isPending) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        Loading the last message…
      </p>
    );
  }
  return (
    <SendHere
      sessionId={sessionId}
      label={
        data == null || error !== null || data.isCut
          ? `${data?.isCut ? TOO_LONG : NOT_KNOWN} Write a new one:`
          : 'Send again:'
      }
      text={data == null || data.isCut ? '' : data.text}
      onSent={onSent}
    />
  );
}

/** A button that unfolds `RetryHere`, for pages of a failed session. */
export function RetryButton({ sessionId }: { sessionId: string }) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) return <RetryHere sessionId={sessionId} onSent={() => {}} />;
  return (
    <button
      type="button"
      onClick={() => setOpen(true)}
      className="min-h-7 rounded border border-line-strong px-2.5 font-medium text-xs hover:bg-raised pointer-coarse:min-h-11"
    >
      Retry
    </button>
  );
}

/** The request of each session, kept so that a press after a lost response can't send the message twice. */
const posts = new Map<string, IdempotentPost>();
/** Sessions whose message is on its way, by whichever button. */
const sending = new Set<string>();

/** Sends the last message of each session again. @returns the result in words, and true if a message was not sent */
export async function retryAll(sessionIds: readonly string[]): Promise<[words: string, isFailure: boolean]> {
  let sent = 0;
  let failure = '';
  await forEachLimited(sessionIds, async (sessionId) => {
    try {
      if (sending.has(sessionId)) throw new Error('It is already being sent.');
      sending.add(sessionId);
      const message = await readLastMessage(sessionId);
      if (message === null || message.isCut) throw new Error(message === null ? NOT_KNOWN : TOO_LONG);
      if (message.hasFiles) throw new Error('The last message has attachments. Attach them again in its session.');
      const post = posts.get(sessionId) ?? new IdempotentPost();
      posts.set(sessionId, post);
      await post.post(`/sessions/${encodeURIComponent(sessionId)}/messages`, { text: message.text });
      posts.delete(sessionId);
      sent += 1;
    } catch (error) {
      failure = (error as Error).message;
    } finally {
      sending.delete(sessionId);
    }
  });
  const left = sessionIds.length - sent;
  const words = `${plural(sent, 'message')} sent again.`;
  return left === 0 ? [words, false] : [`${words} ${left.toLocaleString('en')} not sent: ${failure}`, true];
}

async function readLastMessage(sessionId: string, signal?: AbortSignal) {
  const path = `/sessions/${encodeURIComponent(sessionId)}/transcript?limit=${TURNS}`;
  return lastUserMessage(await fetchJson<TranscriptPage>(path, signal));
}

/** The newest user message; null if the turns have none. */
function lastUserMessage({ turns }: TranscriptPage): { text: string; isCut: boolean; hasFiles: boolean } | null {
  for (const { items } of turns.toReversed()) {
    const message = items.findLast((item) => item.kind === 'message' && item.role === 'user');
    if (message?.kind !== 'message') continue;
    return { text: message.text, isCut: message.cut !== undefined, hasFiles: (message.attachments?.length ?? 0) > 0 };
  }
  return null;
}

/** An overdue reply: the message, a candidate for its reply, and “No reply needed”. */
export function ObligationHere(props: { sessionId: string; messageId: string; updatedPosition: Position }) {
  const { sessionId, messageId, updatedPosition } = props;
  const { data, error, refetch } = useSessionObligations({ id: sessionId, updatedPosition });
  if (data === undefined) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        {error === null ? 'Loading…' : `The pending reply could not be loaded: ${error.message}`}{' '}
        {error !== null && (
          <button type="button" onClick={() => void refetch()} className="underline hover:text-ink">
            Try again
          </button>
        )}
      </p>
    );
  }
  const obligation = data.owed.find((one) => one.messageId === messageId);
  if (obligation === undefined) return <p className="py-2 text-ink-3 text-xs">This reply is no longer pending.</p>;
  return (
    <div className="flex max-w-prose flex-col gap-2 py-2">
      <p dir="auto" className="wrap-break-word line-clamp-6 text-xs">
        <Words text={toPlainText(obligation.text)} />
      </p>
      {obligation.candidate !== null && (
        <AcceptReply sessionId={sessionId} messageId={messageId} candidate={obligation.candidate} />
      )}
      <WaiveReply sessionId={sessionId} messageId={messageId} />
    </div>
  );
}
