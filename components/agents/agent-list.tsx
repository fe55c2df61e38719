'use client';

import Link from 'next/link';
import { type ReactNode, useState } from 'react';
import { MoreRows } from '@/components/live/more-rows';
import { failuresInWords } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import type { AgentList, AgentSummary } from '@/lib/protocol/read-models';
import { SelectionBar } from './selection-bar';
import { useAgents } from './use-agents';

/** Every agent this server has heard of, the last heard first. */
export function AgentTable(props: { initial: AgentList; renderState: (agent: AgentSummary) => ReactNode }) {
  const { initial, renderState } = props;
  const { data, more } = useAgents(initial);
  const agents = data?.agents ?? [];
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  if (agents.length === 0) {
    return (
      <p className="max-w-prose text-ink-2">
        No agent has sent anything yet. One appears here by itself with its first event; the start page says how to
        connect it.
      </p>
    );
  }
  const ordered = [...agents].sort((a, b) => b.lastSeenAt - a.lastSeenAt);
  const chosen = ordered.filter(({ id }) => selected.has(id));
  const select = (id: string, isSelected: boolean) => {
    const next = new Set(selected);
    if (isSelected) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  return (
    <>
      <ul>
        {ordered.map((agent) => (
          <li key={agent.id} className="flex items-center gap-3 border-line border-b">
            <label className="-m-1.5 flex p-1.5">
              <input
                type="checkbox"
                aria-label={`Select ${nameText(agent.id)}`}
                checked={selected.has(agent.id)}
                onChange={(event) => select(agent.id, event.target.checked)}
                className="accent-ink"
              />
            </label>
            <Link
              href={`/agents/${encodeURIComponent(agent.id)}`}
              className="grid min-w-0 flex-1 grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-5 py-2 -outline-offset-2 hover:bg-raised/60 sm:grid-cols-[minmax(0,3fr)_minmax(0,2fr)_minmax(0,3fr)_minmax(0,2fr)_48px]"
            >
              <span className="truncate font-medium">
                <Name text={agent.id} />
              </span>
              <span className="col-start-1 row-start-2 text-ink-3 text-xs sm:col-start-2 sm:row-start-1">
                <Name text={agent.kind ?? 'unnamed kind'} /> · {plural(agent.sessionCount, 'session')}
                {agent.connectedSince !== null && ` · ${agent.connection}`}
                {agent.owedCount > 0 && ` · owes ${plural(agent.owedCount, 'reply', 'replies')}`}
              </span>
              <span className="text-ink-2 text-xs max-sm:col-span-2 max-sm:empty:hidden">{renderState(agent)}</span>
              <span className="text-waiting text-xs max-sm:col-span-2 max-sm:empty:hidden">
                {[
                  agent.insightCount > 0 && failuresInWords(agent),
                  agent.lostCount > 0 && `${plural(agent.lostCount, 'record')} lost`,
                  agent.parkedCount > 0 && `${agent.parkedCount} parked`,
                  agent.quarantinedCount > 0 && `${agent.quarantinedCount} in quarantine`,
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </span>
              <Ago
                at={agent.lastSeenAt}
                className="text-right text-2xs text-ink-3 max-sm:col-start-2 max-sm:row-start-1"
              />
            </Link>
          </li>
        ))}
      </ul>
      {data?.next != null && <MoreRows {...more} listed={agents.length} count={data.count} what="agents" />}
      {chosen.length > 0 && (
        <SelectionBar
          agents={chosen}
          total={ordered.length}
          onAll={() => setSelected(new Set(ordered.map(({ id }) => id)))}
          onNone={() => setSelected(new Set())}
        />
      )}
    </>
  );
}
