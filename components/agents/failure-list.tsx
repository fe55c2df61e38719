'use client';

import type { Position } from '@interlude/protocol/position';
import type { Insight } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
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

/** Marks all failures as seen. Show it beside a heading: the page may hide it at any time, and nothing below may move. */
export function MarkAsSeen({ agentId, insights }: { agentId: string; insights: readonly Insight[] }) {
  const mayAct = useMayAct();
  const newest = unseenOf(insights).at(-1);
  return mayAct && newest !== undefined && <MarkUpTo agentId={agentId} upTo={newest.position} />;
}

function MarkUpTo({ agentId, upTo }: { agentId: string; upTo: Position }) {
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async () => {
    setFailure(null);
    await seeFailures(agentId, upTo).catch((error) => setFailure(String(error?.message ?? error)));
  };
  return (
    <p className="flex min-w-0 flex-wrap gap-x-3 text-xs">
      <button type="button" onClick={mark} className="text-ink-2 underline underline-offset-2 hover:text-ink">
        Mark as seen
      </button>
      <span aria-live="polite" className="text-failed">
        {failure !== null && `Not marked: ${failure}`}
      </span>
    </p>
  );
}
