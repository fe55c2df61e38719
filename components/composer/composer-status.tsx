'use client';

import type { Refusal } from '@interlude/protocol/agent-status-view';
import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { sendingTo } from '@interlude/protocol/sending';
import { useFrozenAt, useLastSignal } from '@/components/ui/clock';
import { Link } from '@/components/ui/link';
import { Phrase, Quoted } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';

/** The most important status of the composer, on one line. */
export function ComposerStatus(props: {
  ended: string | null;
  /** Status of the uploads; null if there are none. */
  attaching: string | null;
  failure: string | null;
  effect: string | null;
  /** Reason the running turn can’t be interrupted; null if it can. */
  noInterrupt: string | null;
  session: SessionSummary;
  agent: AgentSummary | null;
}) {
  const { ended, attaching, failure, effect, noInterrupt, session, agent } = props;
  const sending = sendingTo(session, agent);
  const isStale = useFrozenAt() !== null;
  const lastSignal = useLastSignal(session.lastHeardAt);
  if (ended !== null) return <Phrase text={ended} />;
  if (attaching !== null)
    return (
      <span role="status" className="text-waiting">
        {attaching}
      </span>
    );
  if (failure !== null)
    return (
      <span className="text-failed">
        Could not interrupt: <Phrase text={failure} />
      </span>
    );
  if (isStale) {
    return <span className="text-waiting">Offline. Your messages will be sent when the connection is back.</span>;
  }
  const isDoubtful = sending.kind === 'warned' || (sending.kind === 'queued' && agent?.connection === 'away');
  if (isDoubtful) return <span className="text-waiting">{sending.reason}</span>;
  if (sending.kind === 'queued' && session.state === 'working' && lastSignal !== '')
    return (
      <span className="text-waiting">
        No progress, {lastSignal}. Your message will be delivered at the agent’s next step.
      </span>
    );
  if (effect !== null) return effect;
  if (noInterrupt !== null)
    return (
      <>
        Can’t interrupt: <Phrase text={noInterrupt} />.
      </>
    );
  if (sending.reason !== null) return <Phrase text={sending.reason} />;
  if (session.wakeable === true) return 'Idle. A message wakes the agent.';
  return <span className="key max-sm:hidden">Enter to send, Shift+Enter for a new line.</span>;
}

/** Replaces the composer of a session whose agent can't receive messages. */
export function ComposerRefusal(props: {
  refusal: Refusal;
  sessionId: string;
  /** The agent to write to instead; null until its row is loaded. */
  other: Pick<AgentSummary, 'connection' | 'status'> | null;
}) {
  const { refusal, sessionId, other } = props;
  const { reason } = refusal;
  const instead = refusal.instead?.sessionId === sessionId ? null : refusal.instead;
  return (
    <section aria-label="Composer" className="shrink-0 border-line border-t">
      <p className="session-column flex flex-wrap items-baseline gap-x-3 gap-y-1 py-3 text-ink-2 text-xs">
        <span className="min-w-0">
          You can’t send messages here: <Phrase text={reason} />.
        </span>
        {instead !== null && other?.connection === 'away' && (
          <span className="min-w-0">
            <Quoted text={instead.agentId} /> is offline
            {other.status?.source === 'demo' && ' until the demo runs again'}.
          </span>
        )}
        {instead !== null && other?.connection !== 'away' && (
          <Link
            prefetch={false}
            href={`/sessions/${encodeURIComponent(instead.sessionId)}`}
            aria-label={`Write to ${quoted(instead.agentId)} instead`}
            className="font-medium text-ink underline hover:text-accent"
          >
            Write to <Quoted text={instead.agentId} /> instead
          </Link>
        )}
      </p>
    </section>
  );
}
