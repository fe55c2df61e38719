'use client';

import Link from 'next/link';
import { useMemo, useRef, useState } from 'react';
import { FoundRows, MoreRows } from '@/components/live/more-rows';
import type { ShownList } from '@/components/live/row-table';
import { type MorePages, useStart } from '@/components/live/use-fleet';
import { useListSearch } from '@/components/live/use-list-search';
import { failuresInWords, glyphOf, STATE_WORD } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { HeldChanges } from '@/components/ui/held-changes';
import { ListSearch } from '@/components/ui/list-search';
import { Name } from '@/components/ui/name';
import { useHeldOrder } from '@/components/ui/use-held-order';
import { useSelection } from '@/components/ui/use-selection';
import { nameText } from '@/components/ui/verbatim';
import { SESSION_STATES } from '@/lib/protocol/agent-state';
import { agentText, searchWords } from '@/lib/protocol/list-search';
import type { AgentList, AgentSummary } from '@/lib/protocol/read-models';
import { byName } from './by-name';
import { SelectionBar } from './selection-bar';
import { useAgents } from './use-agents';

/** Every agent this server has heard of, by name, so that each keeps its place whichever was heard last. */
export function AgentTable({ initial }: { initial: AgentList }) {
  useStart((fleet) => fleet.takeAgents(initial));
  const { list, more } = useAgents();
  if (list === undefined || list.rows.length === 0) {
    return (
      <p className="max-w-prose text-ink-2">
        No agent has sent anything yet. One appears here by itself with its first event; the start page says how to
        connect it.
      </p>
    );
  }
  return <AgentRows list={list} more={more} />;
}

function AgentRows(props: { list: ShownList<AgentSummary>; more: MorePages }) {
  const { list, more } = props;
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const asked = text.trim() === '' ? '' : new URLSearchParams({ q: text.trim() }).toString();
  const search = useListSearch<AgentList>({
    path: '/agents',
    asked,
    take: (fleet, page) => fleet.takeFoundAgents(page),
  });
  const { next } = list;
  const agents = useMemo(() => {
    const words = searchWords(text);
    return list.rows.filter((agent) => words.every((word) => agentText(agent).includes(word)));
  }, [list.rows, text]);
  const count = asked === '' ? list.count : (search.found?.count ?? agents.length);
  const box = useRef<HTMLDivElement>(null);
  const { selected, select, selectOnly } = useSelection();
  const names = useMemo(() => [{ name: 'agents', ids: agents.map(({ id }) => id).sort(byName) }], [agents]);
  const { order, moved, added, letGo } = useHeldOrder(box, names, `${next} ${asked}`);
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  const ordered = order.flatMap(({ ids }) => ids).flatMap((id) => byId.get(id) ?? []);
  const chosen = ordered.filter(({ id }) => selected.has(id));
  return (
    <div ref={box} className="@container">
      <div className="flex max-w-sm pb-2">
        <ListSearch what="agents" field={field} value={text} onChange={setText} />
      </div>
      <p className="flex min-h-[1lh] items-baseline gap-3 pb-1 text-2xs text-ink-3">
        <span role="status" className="tabular">
          {!search.isLoading && `${plural(Math.max(count, agents.length), 'agent')}, by name`}
        </span>
        <HeldChanges moved={moved} added={added} onShow={letGo} />
      </p>
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
              className="wrap-break-word grid min-w-0 flex-1 grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-5 py-2 -outline-offset-2 hover:bg-raised/60 @4xl:grid-cols-[minmax(0,4fr)_minmax(0,3fr)_minmax(0,2fr)_minmax(0,3fr)_40px]"
            >
              <span className="truncate font-medium">
                <Name text={agent.id} />
              </span>
              <span className="@max-4xl:col-span-2 @max-4xl:row-start-2 text-ink-3 text-xs @4xl:col-start-2 @4xl:row-start-1">
                <Name text={agent.kind ?? 'unnamed kind'} /> · {plural(agent.sessionCount, 'session')}
                {agent.connectedSince !== null && ` · ${agent.connection}`}
                {agent.owedCount > 0 && ` · owes ${plural(agent.owedCount, 'reply', 'replies')}`}
              </span>
              <span className="@max-4xl:col-span-2 text-ink-2 text-xs @max-4xl:empty:hidden">
                <AgentState agent={agent} />
              </span>
              <span className="@max-4xl:col-span-2 text-waiting text-xs @max-4xl:empty:hidden">
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
                className="@max-4xl:col-start-2 @max-4xl:row-start-1 whitespace-nowrap text-right text-2xs text-ink-3"
              />
            </Link>
          </li>
        ))}
      </ul>
      {asked !== '' ? (
        <FoundRows search={search} listed={agents.length} count={count} one="agent" onAll={() => setText('')} />
      ) : (
        next !== null && <MoreRows {...more} listed={agents.length} count={count} what="agents" />
      )}
      {chosen.length > 0 && (
        <SelectionBar
          agents={chosen}
          total={ordered.length}
          onAll={() => selectOnly(ordered.map(({ id }) => id))}
          onNone={() => selectOnly([])}
        />
      )}
    </div>
  );
}

/** The most urgent state of an agent's sessions, and how many of them are in it. */
function AgentState({ agent: { sessionStates, sessionCount } }: { agent: AgentSummary }) {
  const state = SESSION_STATES.find((candidate) => sessionStates[candidate] > 0);
  if (state === undefined) return null;
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name={glyphOf(state)} className="relative top-[1.5px]" />
      {STATE_WORD[state]}
      {sessionCount > 1 && (
        <span className="tabular text-ink-3">{`${sessionStates[state].toLocaleString('en')} of ${sessionCount.toLocaleString('en')}`}</span>
      )}
    </span>
  );
}
