'use client';

import type { AgentSummary, MessageItem, SessionSummary, Turn } from '@interlude/protocol/read-models';
import { canRetry } from '@interlude/protocol/sending';
import { useCallback } from 'react';
import { useActing } from '@/components/access/may-act';
import { useAgentSummary } from '@/components/agents/use-agents';
import { Composer, type ComposerProps } from '@/components/composer/composer';
import { ComposerRefusal } from '@/components/composer/composer-status';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { sentTexts } from '@/components/composer/sent-history';
import { useRefusal } from '@/components/live/refusals';
import { quote } from '@/components/transcript/reply-link';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { Toast } from '@/components/ui/toast';
import { useSessionRows, useSessionScope, useTranscriptState } from './session-scope';

const NO_TURNS: readonly Turn[] = [];

const awayCode = new CodeOnDemand(async () => (await import('@/components/sessions/away-note')).AwayNote);
const troubleCode = new CodeOnDemand(async () => (await import('@/components/agents/trouble-line')).TroubleNote);
const retryCode = new CodeOnDemand(async () => (await import('@/components/inbox/retry-here')).RetryButton);
/** Needs the transcript's code, which tracks the visible requests. */
const pinsCode = new CodeOnDemand(async () => (await import('./session-pins')).SessionPins);

/** The area below the transcript: notes, requests scrolled out of view, and the composer. */
export function SessionFoot(props: {
  /** True once the visible requests are known. */
  pins: boolean;
  /** An error about something that is scrolled out of view. */
  toast: string | null;
  showToast: (text: string | null) => void;
  onSend: ComposerProps['onSend'];
  onLeave: () => void;
}) {
  const { pins, toast, showToast, onSend, onLeave } = props;
  const { composer } = useSessionScope();
  const { session, agent } = useSessionRows();
  const turns = useTranscriptState((state) => state?.turns);
  const { messages } = useOutgoing(session.id);
  const { may, why } = useActing();
  const refusal = useRefusal('message');
  const other = useAgentSummary(refusal?.instead?.agentId ?? session.agentId);
  const closeToast = useCallback(() => showToast(null), [showToast]);
  usePreload(pinsCode);
  const trouble = agent?.status?.trouble;
  const known = turns ?? NO_TURNS;
  return (
    <>
      <Toast text={toast} onClose={closeToast} />
      {session.away !== null && <OnDemand code={awayCode} name="The note" props={{ session, agent }} />}
      {session.away === null && typeof trouble === 'string' && trouble.trim() !== '' && (
        <OnDemand code={troubleCode} name="The problem" props={{ trouble }} />
      )}
      {pins && (
        <OnDemand
          code={pinsCode}
          name="The open requests"
          props={{ turns: known, openCount: session.pendingRequestCount }}
        />
      )}
      {may && refusal === null && canRetry(session, agent) && (
        <div className="shrink-0 border-line border-t">
          <div className="session-column py-2">
            <OnDemand code={retryCode} name="The retry form" props={{ sessionId: session.id }} />
          </div>
        </div>
      )}
      {!may ? (
        why !== null && <p className="shrink-0 border-line border-t px-4 py-3 text-ink-3 text-xs sm:px-6">{why}</p>
      ) : refusal !== null ? (
        <ComposerRefusal refusal={refusal} sessionId={session.id} other={other} />
      ) : (
        <Composer
          handle={composer}
          session={session}
          agent={agent}
          ended={endOf(session, agent)}
          sent={() => sentTexts(known, messages)}
          quoteOf={(id) => quoteOf(known, id)}
          onSend={onSend}
          onLeave={onLeave}
        />
      )}
    </>
  );
}

/** Reason the session accepts no messages; null if it accepts them. */
export function endOf(session: SessionSummary, agent: AgentSummary | null): string | null {
  const end = session.observations.process;
  if (end === undefined) return null;
  // A runner that connected after the end may have resumed the session.
  if (agent?.connection === 'connected' && (agent.connectedSince ?? 0) >= end.observedAt) return null;
  const why = session.stateReason === null ? '' : `: ${session.stateReason}`;
  // The next demo starts a new session.
  if (agent?.status?.source === 'demo') return `This session can’t receive messages. Its agent has ended${why}.`;
  return `You can write again once the runner resumes this session. Its agent has ended${why}.`;
}

/** Messages by id, cached per turn, because thousands of items may quote messages. */
const messages = new WeakMap<Turn, ReadonlyMap<string, MessageItem>>();

function messagesOf(turn: Turn): ReadonlyMap<string, MessageItem> {
  const known = messages.get(turn);
  if (known !== undefined) return known;
  const found = new Map<string, MessageItem>();
  for (const item of turn.items) if (item.kind === 'message' && !found.has(item.id)) found.set(item.id, item);
  messages.set(turn, found);
  return found;
}

/** The beginning of a message; null if it isn't loaded. */
export function quoteOf(turns: readonly Turn[], messageId: string): string | null {
  for (let index = turns.length - 1; index >= 0; index--) {
    const found = messagesOf(turns[index] as Turn).get(messageId);
    if (found !== undefined) return quote(found);
  }
  return null;
}
