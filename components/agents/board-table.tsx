'use client';

import type { AgentList, AgentSummary } from '@interlude/protocol/read-models';
import { useSearchParams } from 'next/navigation';
import { useCallback, useDeferredValue, useMemo, useRef, useState } from 'react';
import { FoundRows, MoreRows } from '@/components/live/more-rows';
import type { ShownList } from '@/components/live/row-table';
import type { MorePages } from '@/components/live/use-fleet';
import { useListSearch } from '@/components/live/use-list-search';
import { HeldChanges, useHeldOrder } from '@/components/ui/held-order';
import { ListSearch } from '@/components/ui/list-controls';
import { useLatest } from '@/components/ui/use-latest';
import { useSelection } from '@/components/ui/use-selection';
import { BoardActivity } from './board-activity';
import { BoardSorter, SORT_WORD } from './board-columns';
import { BoardFilter } from './board-filter';
import { BoardHead } from './board-head';
import { boardParams, isOnBoard, useBoardQuery, WHOLE_BOARD } from './board-query';
import { BoardRows } from './board-rows';
import { BoardSort } from './board-sort';
import { SelectionBar } from './selection-bar';
import { MOST_LOADED } from './use-whole-board';

/** The agents of a view, in its order, which holds while a hand is on them. */
export function BoardTable({ list, more }: { list: ShownList<AgentSummary>; more: MorePages }) {
  const { rows, next } = list;
  const [query, setQuery] = useBoardQuery(useSearchParams());
  const wanted = useDeferredValue(query);
  // Where all of them are loaded there is nothing that the server could find besides.
  const asked =
    next === null || query.text.trim() === '' ? '' : new URLSearchParams({ q: query.text.trim() }).toString();
  const search = useListSearch<AgentList>({
    path: '/agents',
    asked,
    take: (fleet, page) => fleet.takeFoundAgents(page),
  });
  const field = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const { selected, select, selectOnly } = useSelection();
  const [sorter] = useState(() => new BoardSorter());
  const order = useMemo(() => {
    const shown = rows.filter((agent) => isOnBoard(agent, wanted));
    return [{ name: 'agents', ids: sorter.sort(shown, wanted) }];
  }, [rows, wanted, sorter]);
  const held = useHeldOrder(box, order, `${next} ${boardParams(wanted)}`);
  const byId = useMemo(() => new Map(rows.map((agent) => [agent.id, agent])), [rows]);
  const agents = held.order.flatMap(({ ids }) => ids).flatMap((id) => byId.get(id) ?? []);
  const chosen = agents.filter(({ id }) => selected.has(id));
  const latest = useLatest(select);
  const onSelect = useCallback((id: string, isSelected: boolean) => latest.current(id, isSelected), [latest]);
  const isFiltered = agents.length < rows.length;
  return (
    <div ref={box} className="@container">
      <BoardActivity />
      <div className="flex max-w-sm pb-2">
        <ListSearch what="agents" field={field} value={query.text} onChange={(text) => setQuery({ ...query, text })} />
      </div>
      <BoardFilter agents={rows} query={query} onQuery={setQuery} />
      <p className="flex min-h-[1lh] flex-wrap items-center gap-3 pb-1 text-2xs text-ink-3">
        <span role="status" className="tabular">
          {isFiltered && `${agents.length.toLocaleString('en')} of `}
          {rows.length.toLocaleString('en')} {rows.length === 1 ? 'agent' : 'agents'}
          {`, by ${query.sort === 'name' ? 'name' : SORT_WORD[query.sort].toLowerCase()}`}
        </span>
        <BoardSort
          sort={query.sort}
          isReversed={query.isReversed}
          onSort={(sort, isReversed) => setQuery({ ...query, sort, isReversed })}
        />
        <HeldChanges moved={held.moved} added={held.added} onShow={held.release} />
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: see its rows */}
      <div role="table" aria-label="Agents" aria-rowcount={agents.length + 1}>
        <BoardHead
          query={query}
          onSort={(sort) => setQuery({ ...query, sort, isReversed: query.sort === sort && !query.isReversed })}
          isAll={chosen.length > 0 && chosen.length === agents.length}
          onAll={(isAll) => selectOnly(isAll ? agents.map(({ id }) => id) : [])}
        />
        <BoardRows agents={agents} selected={selected} onSelect={onSelect} />
      </div>
      {asked !== '' && (
        <FoundRows
          search={search}
          listed={agents.length}
          count={Math.max(search.found?.count ?? 0, agents.length)}
          one="agent"
          onAll={() => setQuery({ ...query, text: '' })}
        />
      )}
      {agents.length === 0 && asked === '' && (
        <p className="flex items-baseline gap-3 py-3 text-2xs text-ink-3">
          No agent is like this.
          <button type="button" onClick={() => setQuery(WHOLE_BOARD)} className="underline hover:text-ink">
            Show every agent
          </button>
        </p>
      )}
      {asked === '' && next !== null && (rows.length >= MOST_LOADED || more.error !== null) && (
        <MoreRows {...more} listed={rows.length} count={list.count} what="agents loaded" />
      )}
      {next !== null && rows.length < MOST_LOADED && more.error === null && (
        <p role="status" className="py-3 text-2xs text-ink-3">
          Loading the other agents: {rows.length.toLocaleString('en')} of {list.count.toLocaleString('en')}…
        </p>
      )}
      {chosen.length > 0 && (
        <SelectionBar
          agents={chosen}
          total={agents.length}
          onAll={() => selectOnly(agents.map(({ id }) => id))}
          onNone={() => selectOnly([])}
        />
      )}
    </div>
  );
}
