'use client';

import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { sendingTo } from '@interlude/protocol/sending';
import { Name } from '@/components/ui/name';
import { useKnownUntil } from '@/components/ui/now';

/** The one thing worth saying about writing here, the most pressing first. */
export function ComposerStatus(props: {
  ended: string | null;
  /** What the message waits for, or lacks, of what is attached to it; else null. */
  attaching: string | null;
  failure: string | null;
  effect: string | null;
  /** Why the turn that runs can’t be interrupted from here, else null. */
  noInterrupt: string | null;
  session: SessionSummary;
  agent: AgentSummary | null;
}) {
  const { ended, attaching, failure, effect, noInterrupt, session, agent } = props;
  const sending = sendingTo(session, agent);
  const isStale = useKnownUntil() !== null;
  if (ended !== null) return <Name text={ended} />;
  if (attaching !== null)
    return (
      <span role="status" className="text-waiting">
        {attaching}
      </span>
    );
  if (failure !== null)
    return (
      <span className="text-failed">
        Not interrupted: <Name text={failure} />
      </span>
    );
  if (isStale) {
    return <span className="text-waiting">Offline: what you send waits here until the page is live.</span>;
  }
  const isDoubtful = sending.kind === 'warned' || (sending.kind === 'queued' && agent?.connection === 'away');
  if (isDoubtful) return <span className="text-waiting">{sending.reason}</span>;
  if (effect !== null) return effect;
  if (noInterrupt !== null)
    return (
      <>
        Can’t be interrupted here: <Name text={noInterrupt} />.
      </>
    );
  if (sending.reason !== null) return <Name text={sending.reason} />;
  if (session.wakeable === true) return 'It is idle and listens: a message wakes it.';
  return <span className="max-sm:hidden">Enter sends, Shift+Enter begins a new line.</span>;
}
