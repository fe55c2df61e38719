'use client';

import { useCallback, useMemo } from 'react';
import { useAgentSummary } from '@/components/agents/use-agents';
import { Composer } from '@/components/composer/composer';
import { ComposerRefusal } from '@/components/composer/composer-refusal';
import { sentTexts } from '@/components/composer/sent-texts';
import { useOutgoing } from '@/components/composer/use-outgoing';
import type { ActionStore } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { findRequest, openRequests } from '@/components/requests/open-requests';
import { PinnedRequests } from '@/components/requests/pinned-requests';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { Toast } from '@/components/ui/toast';
import type { Turn } from '@/lib/protocol/read-models';
import { renderRequest } from '../../render-request';
import { endOf } from './end-of';
import { quoteOf } from './quote-of';
import { useSessionRows, useSessionScope, useTranscriptState } from './session-scope';
import { useOutcomes } from './use-outcomes';

const NO_TURNS: readonly Turn[] = [];

const awayCode = new CodeOnDemand(async () => (await import('@/components/sessions/away-note')).AwayNote);

/** What stands below the transcript: what the agent waits for while that is out of sight, and where to write to it. */
export function SessionFoot(props: {
  actions: ActionStore;
  /** Whether it is known which requests are in sight. */
  pins: boolean;
  /** What went wrong out of sight. */
  toast: string | null;
  say: (text: string | null) => void;
  onSend: (text: string, replyTo: string | null) => void;
  onLeave: () => void;
}) {
  const { actions, pins, toast, say, onSend, onLeave } = props;
  const { composer } = useSessionScope();
  const { session, agent } = useSessionRows();
  const turns = useTranscriptState((state) => state?.turns);
  const { messages } = useOutgoing(session.id);
  useOutcomes({ actions, turns, outgoing: messages, say });
  const refusal = useRefusal('message');
  const other = useAgentSummary(refusal?.instead?.agentId ?? session.agentId);
  const closeToast = useCallback(() => say(null), [say]);
  const { pendingRequestCount } = session;
  const known = turns ?? NO_TURNS;
  const requests = useMemo(() => openRequests(known, pendingRequestCount), [known, pendingRequestCount]);
  return (
    <>
      <Toast text={toast} onClose={closeToast} />
      {session.away !== null && <OnDemand code={awayCode} name="Why it is away" props={{ session, agent }} />}
      {pins && (
        <PinnedRequests
          requests={requests}
          find={(item) => findRequest(known, item)}
          renderRequest={(item, onDismiss) => renderRequest(item, { onDismiss })}
        />
      )}
      {refusal !== null ? (
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
