'use client';

import type { MessageResponse, Sending, SendMessage } from '@interlude/protocol/commands';
import { useEffect, useEffectEvent, useId, useState } from 'react';
import { usePost } from '@/components/live/idempotent-post';
import { Phrase } from '@/components/ui/name';

/**
 * A prepared message, editable before it is sent.
 *
 * @param warning shown above the button
 * @param onSent called once with the outcome of the message
 */
export function SendHere(props: {
  sessionId: string;
  label: string;
  text: string;
  results?: SendMessage['results'];
  warning?: string | null;
  onSent: (sending: Sending) => void;
}) {
  const { sessionId, label, results, warning = null, onSent } = props;
  const [typed, setTyped] = useState<string | null>(null);
  const [state, post] = usePost<MessageResponse>();
  const sent = useEffectEvent(onSent);
  const sending = state.kind === 'done' ? state.response.sending : null;
  useEffect(() => {
    if (sending !== null) sent(sending);
  }, [sending]);
  const id = useId();
  const text = typed ?? props.text;
  const isOff = text.trim() === '' || state.kind === 'sending';
  if (sending !== null) return <p className="py-2 text-ink-2 text-xs">Sent. {sending.reason}</p>;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isOff) void post(`/sessions/${encodeURIComponent(sessionId)}/messages`, { text, results });
      }}
      className="flex flex-col gap-2 py-2 text-xs"
    >
      <label htmlFor={id} className="text-ink-3">
        {label}
      </label>
      <textarea
        id={id}
        dir="auto"
        value={text}
        rows={Math.min(8, text.split('\n').length + 1)}
        onChange={(event) => setTyped(event.target.value)}
        className="max-w-prose rounded border border-line-strong bg-ground px-2.5 py-1.5 text-ink outline-none focus:border-accent"
      />
      {warning !== null && (
        <p className="max-w-prose text-waiting">
          <Phrase text={warning} />
        </p>
      )}
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <button
          type="submit"
          aria-disabled={isOff}
          className="min-h-7 rounded bg-ink px-2.5 font-medium text-ground hover:bg-ink-2 aria-disabled:bg-raised aria-disabled:text-ink-3"
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
