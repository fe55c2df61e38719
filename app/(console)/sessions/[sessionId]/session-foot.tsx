'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { useCallback } from 'react';
import { useActing } from '@/components/access/may-act';
import { useAgentSummary } from '@/components/agents/use-agents';
import { Composer, type ComposerProps } from '@/components/composer/composer';
import { ComposerRefusal } from '@/components/composer/composer-status';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { sentTexts } from '@/components/composer/sent-history';
import type { ActionStore } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { Toast } from '@/components/ui/toast';
import { endOf } from './end-of';
import { quoteOf } from './quote-of';
import { useSessionRows, useSessionScope, useTranscriptState } from './session-scope';
import { useOutcomes } from './use-outcomes';

const NO_TURNS: readonly Turn[] = [];

const awayCode = new CodeOnDemand(async () => (await import('@/components/sessions/away-note')).AwayNote);
const troubleCode = new CodeOnDemand(async () => (await import('@/components/agents/trouble-line')).TroubleNote);
/** Of no use before the transcript's code is here, which knows what is in sight. */
const pinsCode = new CodeOnDemand(async () => (await import('./session-pins')).SessionPins);

/** What stands below the transcript: what the agent waits for while that is out of sight, and where to write to it. */
export function SessionFoot(props: {
  actions: ActionStore;
  /** Whether it is known which requests are in sight. */
  pins: boolean;
  /** What went wrong out of sight. */
  toast: string | null;
  say: (text: string | null) => void;
  onSend: ComposerProps['onSend'];
  onLeave: () => void;
}) {
  const { actions, pins, toast, say, onSend, onLeave } = props;
  const { composer } = useSessionScope();
  const { session, agent } = useSessionRows();
  const turns = useTranscriptState((state) => state?.turns);
  const { messages } = useOutgoing(session.id);
  useOutcomes({ actions, turns, outgoing: messages, say });
  const { may, why } = useActing();
  const refusal = useRefusal('message');
  const other = useAgentSummary(refusal?.instead?.agentId ?? session.agentId);
  const closeToast = useCallback(() => say(null), [say]);
  usePreload(pinsCode);
  const trouble = agent?.status?.trouble;
  const known = turns ?? NO_TURNS;
  return (
    <>
      <Toast text={toast} onClose={closeToast} />
      {session.away !== null && <OnDemand code={awayCode} name="Why it is away" props={{ session, agent }} />}
      {session.away === null && typeof trouble === 'string' && trouble.trim() !== '' && (
        <OnDemand code={troubleCode} name="What is wrong" props={{ trouble }} />
      )}
      {pins && (
        <OnDemand
          code={pinsCode}
          name="What the agent waits for"
          props={{ turns: known, openCount: session.pendingRequestCount }}
        />
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
