'use client';

import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import type { Position } from '@/lib/protocol/position';
import type { Insight } from '@/lib/protocol/read-models';
import { InsightList } from './insight-list';
import { SeenWhileShown, seeFailures, unseenOf } from './seen-while-shown';
import type { LiveAgent } from './use-agents';

/** What failed around an agent, hooks that died above all, the newest first. What is shown here counts as seen. */
export function FailureList({ agent, insights, sessions }: Pick<LiveAgent, 'agent' | 'insights' | 'sessions'>) {
  return (
    <SeenWhileShown agent={agent} insights={insights}>
      <InsightList insights={insights} sessions={sessions} />
    </SeenWhileShown>
  );
}

/**
 * Belongs beside a heading, where nothing moves when it goes: the page marks what it shows by itself, while somebody
 * may be about to press a button below.
 */
export function MarkAsSeen({ agentId, insights }: { agentId: string; insights: readonly Insight[] }) {
  const mayAct = useMayAct();
  const newest = unseenOf(insights).at(-1);
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async (upTo: Position) => {
    setFailure(null);
    await seeFailures(agentId, upTo).catch((error) => setFailure(String(error?.message ?? error)));
  };
  if (!mayAct || newest === undefined) return null;
  return (
    <p className="flex min-w-0 flex-wrap gap-x-3 text-xs">
      <button
        type="button"
        onClick={() => mark(newest.position)}
        className="text-ink-2 underline underline-offset-2 hover:text-ink"
      >
        Mark as seen
      </button>
      <span aria-live="polite" className="text-failed">
        {failure !== null && `Not marked: ${failure}`}
      </span>
    </p>
  );
}
