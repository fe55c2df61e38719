'use client';

import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import type { Insight } from '@/lib/protocol/read-models';
import { InsightList } from './insight-list';
import { SeenWhileShown, seeFailures, unseenOf } from './seen-while-shown';
import type { LiveAgent } from './use-agents';

/** What failed around an agent, hooks that died above all, the newest first. What is shown here counts as seen. */
export function FailureList({ agent, insights, sessions }: Pick<LiveAgent, 'agent' | 'insights' | 'sessions'>) {
  const mayAct = useMayAct();
  const newest = unseenOf(insights).at(-1);
  return (
    <SeenWhileShown agent={agent} insights={insights}>
      <InsightList insights={insights} sessions={sessions} />
      {mayAct && newest !== undefined && <MarkAsSeen agentId={agent.id} newest={newest} />}
    </SeenWhileShown>
  );
}

function MarkAsSeen({ agentId, newest }: { agentId: string; newest: Insight }) {
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async () => {
    setFailure(null);
    await seeFailures(agentId, newest.position).catch((error) => setFailure(String(error?.message ?? error)));
  };
  return (
    <p className="mt-2 flex flex-wrap gap-x-3 text-xs">
      <button type="button" onClick={mark} className="text-ink-2 underline underline-offset-2 hover:text-ink">
        Mark as seen
      </button>
      <span aria-live="polite" className="text-failed">
        {failure !== null && `Not marked: ${failure}`}
      </span>
    </p>
  );
}
