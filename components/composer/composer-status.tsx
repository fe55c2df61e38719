'use client';

import { Name } from '@/components/ui/name';
import { useKnownUntil } from '@/components/ui/now';
import type { AgentSummary } from '@/lib/protocol/read-models';

/** The one thing worth saying about writing here, the most pressing first. */
export function ComposerStatus(props: {
  ended: string | null;
  failure: string | null;
  effect: string | null;
  /** Why the turn that runs can’t be interrupted from here, else null. */
  noInterrupt: string | null;
  agent: AgentSummary | null;
}) {
  const { ended, failure, effect, noInterrupt, agent } = props;
  const isStale = useKnownUntil() !== null;
  if (ended !== null) return <Name text={ended} />;
  if (failure !== null)
    return (
      <span className="text-failed">
        Not interrupted: <Name text={failure} />
      </span>
    );
  if (isStale) {
    return <span className="text-waiting">Offline: what you send waits here until the page is live.</span>;
  }
  if (agent?.connection === 'away') {
    const never = agent.connectedSince === null ? 'No runner listens for this agent' : 'The agent is away';
    return <span className="text-waiting">{never}: the message waits.</span>;
  }
  if (effect !== null) return effect;
  if (noInterrupt !== null)
    return (
      <>
        Can’t be interrupted here: <Name text={noInterrupt} />.
      </>
    );
  return <span className="max-sm:hidden">Enter sends, Shift+Enter begins a new line.</span>;
}
