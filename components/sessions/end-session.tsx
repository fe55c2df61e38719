'use client';

import type { CommandAnswer } from '@interlude/protocol/commands';
import { useEffect, useRef, useState } from 'react';
import { usePost } from '@/components/live/idempotent-post';

const END_ACTION = 'h-7 rounded border border-line px-2.5 hover:border-ink disabled:opacity-50';

/** Ends the session, with its agent and its runner, once that was confirmed where it stands. */
export function EndSession({ sessionId, onAsked }: { sessionId: string; onAsked: () => void }) {
  const [isSure, setSure] = useState<boolean | null>(null);
  const [state, ask] = usePost<CommandAnswer>();
  const button = useRef<HTMLButtonElement>(null);
  // The button that was pressed is gone: keys go on where it stood.
  useEffect(() => {
    if (isSure !== null) button.current?.focus();
  }, [isSure]);
  useEffect(() => {
    if (state.kind === 'answered') onAsked();
  }, [state, onAsked]);
  const isSending = state.kind === 'sending';
  return (
    <div className="border-line border-t px-3 pt-2 pb-1.5 text-xs">
      {isSure === true ? (
        <>
          <p className="mb-1.5">Its agent and its runner end. What still runs after 5 seconds is broken off.</p>
          <div className="flex flex-wrap gap-2">
            <button
              ref={button}
              type="button"
              disabled={isSending}
              onClick={() => void ask(`/sessions/${encodeURIComponent(sessionId)}/end`)}
              className={`${END_ACTION} text-failed`}
            >
              End it now
            </button>
            <button type="button" disabled={isSending} onClick={() => setSure(false)} className={END_ACTION}>
              Keep it
            </button>
          </div>
        </>
      ) : (
        <button ref={button} type="button" onClick={() => setSure(true)} className={END_ACTION}>
          End session…
        </button>
      )}
      {state.kind === 'failed' && (
        <p role="alert" className="mt-1 text-failed">
          {state.reason}
        </p>
      )}
    </div>
  );
}
