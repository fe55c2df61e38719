'use client';

import type { AcceptReplyResponse, WaiveResponse } from '@interlude/protocol/commands';
import type { ReplyCandidate } from '@interlude/protocol/read-models';
import { useMayAct } from '@/components/access/may-act';
import { usePost } from '@/components/live/idempotent-post';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Phrase, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';

/** “No reply needed”, with confirmation. The live update removes the row. */
export function WaiveReply({ sessionId, messageId }: { sessionId: string; messageId: string }) {
  const [state, post] = usePost<WaiveResponse>();
  const mayAct = useMayAct();
  const isPending = state.kind === 'sending' || state.kind === 'done';
  const path = `/sessions/${encodeURIComponent(sessionId)}/obligations/${encodeURIComponent(messageId)}/waive`;
  if (!mayAct) return null;
  return (
    <span aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2 text-2xs">
      {state.kind === 'failed' && (
        <span className="text-failed">
          Could not save: <Phrase text={state.reason} />
        </span>
      )}
      <ConfirmButton
        of={messageId}
        disabled={isPending}
        onPress={() => post(path)}
        className="min-h-6 whitespace-nowrap aria-disabled:cursor-default aria-disabled:no-underline"
        looks={['text-ink-3 hover:text-ink', 'font-medium text-ink aria-disabled:text-ink-3']}
      >
        {(isPressed) => (isPending ? 'Saving…' : isPressed ? 'Press again: no reply needed' : 'No reply needed')}
      </ConfirmButton>
    </span>
  );
}

/** A message that may be the reply, with a button to accept exactly this text. */
export function AcceptReply(props: { sessionId: string; messageId: string; candidate: ReplyCandidate }) {
  const { sessionId, messageId, candidate } = props;
  const [state, post] = usePost<AcceptReplyResponse>();
  const mayAct = useMayAct();
  const isPending = state.kind === 'sending' || state.kind === 'done';
  const path = `/sessions/${encodeURIComponent(sessionId)}/obligations/${encodeURIComponent(messageId)}/accept`;
  return (
    <div className="border-line-strong border-l-2 pl-2 text-xs">
      <p className="text-2xs text-ink-3">Newer message that may be the reply:</p>
      <p dir="auto" className="wrap-break-word line-clamp-6 text-ink-2">
        <Words text={toPlainText(candidate.text)} />
      </p>
      <p aria-live="polite" className="flex flex-wrap items-baseline gap-x-3 text-2xs">
        {mayAct && (
          <SettledButton
            of={`${messageId} ${candidate.messageId} ${candidate.position}`}
            disabled={isPending}
            onPress={() => void post(path, { candidateId: candidate.messageId, candidatePosition: candidate.position })}
            className="font-medium text-ink underline decoration-line-strong underline-offset-2 hover:text-accent aria-disabled:text-ink-3 aria-disabled:no-underline"
          >
            {isPending ? 'Accepting…' : 'Accept as reply'}
          </SettledButton>
        )}
        {state.kind === 'failed' && (
          <span className="text-failed">
            Could not accept the reply: <Phrase text={state.reason} />
          </span>
        )}
      </p>
    </div>
  );
}
