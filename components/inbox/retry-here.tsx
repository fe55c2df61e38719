'use client';

import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useId, useState } from 'react';
import { useAsk } from '@/components/live/ask';
import { fetchJson } from '@/components/live/fetch-json';
import type { MessageAnswer } from '@/lib/protocol/commands';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import type { Sending } from '@/lib/protocol/sending';

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
  const [typed, setTyped] = useState<string | null>(null);
  const [state, ask] = useAsk<MessageAnswer>();
  const sent = useEffectEvent(onSent);
  const sending = state.kind === 'answered' ? state.answer.sending : null;
  useEffect(() => {
    if (sending !== null) sent(sending);
  }, [sending]);
  const why = useId();
  const text = typed ?? (data == null || data.isCut ? '' : data.text);
  const isOff = text.trim() === '' || state.kind === 'sending';
  if (isPending) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        Looking up what it was asked…
      </p>
    );
  }
  if (sending !== null) return <p className="py-2 text-ink-2 text-xs">Sent. {sending.reason}</p>;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isOff) void ask(`/sessions/${encodeURIComponent(sessionId)}/messages`, { text });
      }}
      className="flex flex-col gap-2 py-2 text-xs"
    >
      <label htmlFor={why} className="text-ink-3">
        {data == null || error !== null ? NOT_KNOWN : data.isCut ? TOO_LONG : 'Send again:'}
      </label>
      <textarea
        id={why}
        dir="auto"
        value={text}
        rows={Math.min(8, text.split('\n').length + 1)}
        onChange={(event) => setTyped(event.target.value)}
        className="max-w-prose rounded border border-line-strong bg-ground px-2.5 py-1.5 outline-none focus:border-accent"
      />
      <p className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <button
          type="submit"
          aria-disabled={isOff}
          className="rounded-sm font-medium underline decoration-line-strong underline-offset-2 hover:text-accent aria-disabled:text-ink-3"
        >
          {state.kind === 'sending' ? 'Sending…' : 'Send'}
        </button>
        <span role="alert" className="text-failed">
          {state.kind === 'failed' && `Not sent: ${state.reason}`}
        </span>
      </p>
    </form>
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
