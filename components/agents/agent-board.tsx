'use client';

import type { AgentList, AgentSummary } from '@interlude/protocol/read-models';
import { useSearchParams } from 'next/navigation';
import { useCallback, useDeferredValue, useEffect, useEffectEvent, useMemo, useRef, useState } from 'react';
import { ListEnd } from '@/components/live/list';
import type { ShownList } from '@/components/live/row-table';
import { useInitialData } from '@/components/live/use-fleet';
import { type ListState, useListSearch } from '@/components/live/use-list';
import { useStored } from '@/components/ui/browser-storage';
import { useHydrated } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { HeldChanges, useHeldOrder } from '@/components/ui/held-order';
import { Link } from '@/components/ui/link';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useLatest } from '@/components/ui/use-latest';
import { useMedia } from '@/components/ui/use-media';
import { useSelection } from '@/components/ui/use-selection';
import { BoardSorter, SORT_WORD } from './board-columns';
import { BoardFilter, boardParams, isOnBoard, UNFILTERED_BOARD, useBoardQuery } from './board-filter';
import { BoardHead, BoardSort } from './board-head';
import { BoardRows } from './board-rows';
import { useAgents } from './use-agents';

const selectionCode = new CodeOnDemand(async () => (await import('./selection-bar')).SelectionBar);

/** All agents of this server with their state, host, pending replies and missing records. */
export function AgentBoard({ initial }: { initial: AgentList }) {
  useInitialData((fleet) => fleet.putAgents(initial));
  const { list, state } = useAgents();
  useWholeBoard(list, state);
  if (list !== undefined && list.rows.length > 0) return <BoardTable list={list} state={state} />;
  return (
    <p className="max-w-prose text-ink-2">
      No agents yet. An agent appears here with its first event.{' '}
      <Link href="/" className="underline underline-offset-2 hover:text-ink">
        Connect an agent
      </Link>
    </p>
  );
}

/** Number of agents loaded automatically, because only loaded agents can be sorted. */
const MAX_LOADED = 2_000;

/**
 * Loads page after page. After a failure, the user has to press the button to continue.
 *
 * Ordering: call it in the component that creates `state`, after creating it. In a child, `load` would read the
 * previous page.
 */
function useWholeBoard(list: ShownList<AgentSummary> | undefined, state: ListState): void {
  const { next = null, rows = [] } = list ?? {};
  const { load, isLoading, error } = state;
  const loads = next !== null && rows.length < MAX_LOADED && !isLoading && error === null;
  const loadNext = useEffectEvent(load);
  useEffect(() => {
    if (loads && next !== null) loadNext();
  }, [loads, next]);
}

/** The agents of a view. Keeps their order while the user points at one. */
function BoardTable({ list, state }: { list: ShownList<AgentSummary>; state: ListState }) {
  const { rows, next } = list;
  const [query, setQuery] = useBoardQuery(useSearchParams());
  const deferred = useDeferredValue(query);
  // Once all agents are loaded, the server has no further matches.
  const serverQuery =
    next === null || query.text.trim() === '' ? '' : new URLSearchParams({ q: query.text.trim() }).toString();
  const search = useListSearch<AgentList>({
    path: '/agents',
    query: serverQuery,
    put: (fleet, page) => fleet.putFoundAgents(page),
  });
  const field = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const { selected, select, selectOnly } = useSelection();
  const [sorter] = useState(() => new BoardSorter());
  const order = useMemo(() => {
    const shown = rows.filter((agent) => isOnBoard(agent, deferred));
    return [{ name: 'agents', ids: sorter.sort(shown, deferred) }];
  }, [rows, deferred, sorter]);
  usePreload(selectionCode);
  const held = useHeldOrder(box, order, `${next} ${boardParams(deferred)}`);
  const byId = useMemo(() => new Map(rows.map((agent) => [agent.id, agent])), [rows]);
  const agents = held.order.flatMap(({ ids }) => ids).flatMap((id) => byId.get(id) ?? []);
  const chosen = agents.filter(({ id }) => selected.has(id));
  const latest = useLatest(select);
  const onSelect = useCallback((id: string, isSelected: boolean) => latest.current(id, isSelected), [latest]);
  const isFiltered = agents.length < rows.length;
  const isSearched = serverQuery !== '';
  const loadsRest = next !== null && rows.length < MAX_LOADED && state.error === null;
  const onClear = () => setQuery(query.text.trim() === '' ? UNFILTERED_BOARD : { ...query, text: '' });
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
          {plural(rows.length, 'agent')}
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
      {loadsRest && (
        <p role="status" className="py-3 text-2xs text-ink-3">
          Loading the other agents: {rows.length.toLocaleString('en')} of {list.count.toLocaleString('en')}…
        </p>
      )}
      {(isSearched || !loadsRest) && (
        <ListEnd
          state={isSearched ? search : state}
          listed={isSearched || agents.length === 0 ? agents.length : rows.length}
          count={isSearched ? (search.found?.count ?? 0) : agents.length === 0 ? undefined : list.count}
          what="agents"
          search={isSearched || agents.length === 0 ? { text: query.text, onClear } : undefined}
        />
      )}
      {chosen.length > 0 && (
        <OnDemand
          code={selectionCode}
          name="The bar for selected agents"
          props={{
            agents: chosen,
            total: agents.length,
            onAll: () => selectOnly(agents.map(({ id }) => id)),
            onNone: () => selectOnly([]),
          }}
        />
      )}
    </div>
  );
}

const chartsCode = new CodeOnDemand(async () => (await import('./fleet-charts')).FleetCharts);

/** The charts above the board. The browser remembers if they are folded. */
function BoardActivity() {
  const [chosen, choose] = useStored('fold-activity');
  // On a phone they would push the agents out of view.
  const isWide = useMedia('(min-width: 640px)');
  const isKnown = useHydrated();
  const isOpen = chosen === null ? isWide : chosen === 'open';
  return (
    <section aria-label="Activity" className="pb-3">
      <h2 className="pb-1 font-medium text-xs">
        <FoldButton isOpen={isOpen} onToggle={() => choose(isOpen ? 'folded' : 'open')} className="hover:text-accent">
          Activity
        </FoldButton>
      </h2>
      {/* The server reserves the usual height, so nothing moves. */}
      {!isKnown && <div className="hidden min-h-44 sm:block" />}
      {isKnown && isOpen && (
        <div className="min-h-44">
          <OnDemand code={chartsCode} name="The charts" props={{}} />
        </div>
      )}
    </section>
  );
}
