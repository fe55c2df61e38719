'use client';

import { LevelOfMany } from '@/components/logs/level-of-many';
import type { AgentSummary } from '@/lib/protocol/read-models';

/** What can be done with all agents that are selected. */
export function SelectionBar(props: {
  agents: readonly AgentSummary[];
  total: number;
  onAll: () => void;
  onNone: () => void;
}) {
  const { agents, total, onAll, onNone } = props;
  return (
    <section aria-label="Selected agents" className="sticky bottom-0 z-10 border-line-strong border-t bg-ground py-3">
      <div className="flex flex-col gap-x-6 gap-y-2 sm:flex-row">
        <div className="flex h-6 shrink-0 items-center gap-x-3 text-xs">
          <span className="tabular font-medium">{agents.length} selected</span>
          {agents.length < total && (
            <button type="button" onClick={onAll} className="text-ink-3 underline hover:text-ink">
              All {total}
            </button>
          )}
          <button type="button" onClick={onNone} className="text-ink-3 underline hover:text-ink">
            None
          </button>
        </div>
        <LevelOfMany agents={agents} />
      </div>
    </section>
  );
}
