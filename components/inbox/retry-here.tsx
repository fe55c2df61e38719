'use client';

import type { Sending } from '@interlude/protocol/commands';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { SendHere } from '@/components/sessions/send-here';

const NOT_KNOWN = 'What it was asked last is not among its newest turns. Write what to send:';
const TOO_LONG = 'What it was asked last is too long to be shown whole here. Write what to send:';

/** Turns that are looked through for what the agent was last asked. */
const TURNS = 20;

/**
 * Asks a session that failed once more for what it was asked last; what is sent stands here before it is.
 *
 * @param onSent told what becomes of it: with that the session has failed no more, and its item goes
 */
export function RetryHere({ sessionId, onSent }: { sessionId: string; onSent: (sending: Sending) => void }) {
  const { data, error, isPending } = useQuery({
    queryKey: ['asked-last', sessionId],
    queryFn: async ({ signal }) =>
      askedLast(
        await fetchJson<TranscriptPage>(`/sessions/${encodeURIComponent(sessionId)}/transcript?limit=${TURNS}`, signal),
      ),
    gcTime: 0,
  });
  if (isPending) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        Looking up what it was asked…
      </p>
    );
  }
  return (
    <SendHere
      sessionId={sessionId}
      label={data == null || error !== null ? NOT_KNOWN : data.isCut ? TOO_LONG : 'Send again:'}
      text={data == null || data.isCut ? '' : data.text}
      onSent={onSent}
    />
  );
}

/** The newest message of a person; null where the turns have none. */
function askedLast({ turns }: TranscriptPage): { text: string; isCut: boolean } | null {
  for (const { items } of turns.toReversed()) {
    const said = items.findLast((item) => item.kind === 'message' && item.role === 'user');
    if (said?.kind === 'message') return { text: said.text, isCut: said.cut !== undefined };
  }
  return null;
}
