'use client';

import { type RefObject, useMemo } from 'react';
import { useAgentSummary } from '@/components/agents/use-agents';
import { Composer, type ComposerHandle } from '@/components/composer/composer';
import { ComposerRefusal } from '@/components/composer/composer-refusal';
import { useOutgoing } from '@/components/composer/outgoing-provider';
import { sentTexts } from '@/components/composer/sent-texts';
import { useRefusal } from '@/components/live/refusals';
import { findRequest, openRequests } from '@/components/requests/open-requests';
import { PinnedRequests } from '@/components/requests/pinned-requests';
import { AwayNote } from '@/components/sessions/away-note';
import { Toast } from '@/components/ui/toast';
import type { AgentSummary, SessionSummary, Turn } from '@/lib/protocol/read-models';
import { renderRequest } from './render-request';
import { quoteOf } from './use-session-slots';

const NO_TURNS: readonly Turn[] = [];

/** What stands below the transcript: what the agent waits for while that is out of sight, and where to write to it. */
export function SessionFoot(props: {
  session: SessionSummary;
  agent: AgentSummary | null;
  turns: readonly Turn[] | undefined;
  ended: string | null;
  composer: RefObject<ComposerHandle | null>;
  toast: string | null;
  onCloseToast: () => void;
  onSend: (text: string, replyTo: string | null) => void;
  onLeave: () => void;
}) {
  const { session, agent, turns = NO_TURNS, ended, composer, toast, onCloseToast, onSend, onLeave } = props;
  const { messages } = useOutgoing(session.id);
  const refusal = useRefusal('message');
  const other = useAgentSummary(refusal?.instead?.agentId ?? session.agentId).data?.agent ?? null;
  const { pendingRequestCount } = session;
  const requests = useMemo(() => openRequests(turns, pendingRequestCount), [turns, pendingRequestCount]);
  return (
    <>
      <Toast text={toast} onClose={onCloseToast} />
      <AwayNote session={session} agent={agent} />
      <PinnedRequests
        requests={requests}
        find={(item) => findRequest(turns, item)}
        renderRequest={(item, onDismiss) => renderRequest(item, { onDismiss })}
      />
      {refusal !== null ? (
        <ComposerRefusal refusal={refusal} sessionId={session.id} other={other} />
      ) : (
        <Composer
          handle={composer}
          session={session}
          agent={agent}
          ended={ended}
          sent={() => sentTexts(turns, messages)}
          quoteOf={(id) => quoteOf(turns, id)}
          onSend={onSend}
          onLeave={onLeave}
        />
      )}
    </>
  );
}

/** Why nobody hears any more what is written here, else null. */
export function endOf(
  session: SessionSummary,
  agent: AgentSummary | null,
  turns: readonly Turn[] | undefined,
): string | null {
  const last = turns?.at(-1)?.items.at(-1);
  const died = session.state === 'failed' && last?.kind === 'notice' && last.code === 'session-ended';
  if (session.state !== 'done' && !died) return null;
  // A runner that came after the end may have taken the session up again; the server takes messages for it, too.
  if (agent?.connection === 'connected' && (agent.connectedSince ?? 0) >= session.stateSince) return null;
  const why = session.stateReason === null ? '' : ` (${session.stateReason})`;
  // The next demo begins another one.
  if (agent?.status?.source === 'demo') return `The agent of this session has ended${why}, and hears nothing more.`;
  return `The agent of this session has ended${why}. It can be written to once its runner resumes it.`;
}
