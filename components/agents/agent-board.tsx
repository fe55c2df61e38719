'use client';

import type { AgentList, AgentSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useSearchParams } from 'next/navigation';
import { type CSSProperties, useCallback, useDeferredValue, useMemo, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { ALL } from '@/components/live/fleet-store';
import { ListEnd, useFurtherPages } from '@/components/live/list';
import type { ShownList } from '@/components/live/row-table';
import { useCounts } from '@/components/live/use-counts';
import { useFleet, useInitialData } from '@/components/live/use-fleet';
import { type ListState, useListSearch } from '@/components/live/use-list';
import { useStored } from '@/components/ui/browser-storage';
import { useHydrated } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { HeldChanges } from '@/components/ui/held-changes';
import { useHeldOrder } from '@/components/ui/held-order';
import { FoldButton, ListSearch } from '@/components/ui/list-controls';
import { NoAgents } from '@/components/ui/no-agents';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useLatest } from '@/components/ui/use-latest';
import { useMedia } from '@/components/ui/use-media';
import { useSelection } from '@/components/ui/use-selection';
import { stalledAgents } from './board-agent';
import { BoardSorter, gridOf, type Sort, usualColumns } from './board-columns';
import {
  BoardFilter,
  boardParams,
  columnsFrom,
  isOnBoard,
  listedCount,
  UNFILTERED_BOARD,
  useBoardQuery,
} from './board-filter';
import { BoardHead, BoardSort } from './board-head';
import { BoardRows } from './board-rows';
import { ViewsButton } from './saved-views';
import { useAgents } from './use-agents';
import { useBoardKeys } from './use-board-keys';

const selectionCode = new CodeOnDemand(async () => (await import('./selection-bar')).SelectionBar);
const stopCode = new CodeOnDemand(async () => (await import('./stop-all')).StopAll);

/** All agents of this server with their state, host, pending replies and missing records. */
export function AgentBoard({ initial }: { initial: AgentList }) {
  useInitialData((fleet) => fleet.putAgents(initial));
  const { list, state } = useAgents();
  useFurtherPages((list?.rows.length ?? 0) < MAX_LOADED, state);
  if (list !== undefined && list.rows.length > 0) return <BoardTable list={list} state={state} />;
  return <NoAgents>An agent appears here with its first event.</NoAgents>;
}

/** Number of agents loaded automatically, because only loaded agents can be sorted. */
const MAX_LOADED = 2_000;

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
  const columnsButton = useRef<HTMLButtonElement>(null);
  const [choosesColumns, setChoosesColumns] = useState(false);
  const [stored, store] = useStored('board-columns');
  const chosenColumns = deferred.columns ?? columnsFrom(stored || null);
  const usual = useMemo(() => usualColumns(rows).join('.'), [rows]);
  const named = chosenColumns?.join('.') ?? usual;
  const columns = useMemo<Sort[]>(() => ['name', ...(columnsFrom(named) ?? [])], [named]);
  const grid = useMemo(() => gridOf(columns, rows), [columns, rows]);
  const box = useRef<HTMLDivElement>(null);
  const { selected, selectAll, rangeTo, selectOnly } = useSelection();
  const [sorter] = useState(() => new BoardSorter());
  const stalled = useFleet(({ sessions }) => stalledAgents(sessions.list(ALL)?.rows));
  const order = useMemo(() => {
    const shown = rows.filter((agent) => isOnBoard(agent, deferred));
    return [{ name: 'agents', ids: sorter.sort(shown, deferred, new Set<string>(JSON.parse(stalled))) }];
  }, [rows, deferred, sorter, stalled]);
  usePreload(selectionCode);
  usePreload(stopCode);
  const held = useHeldOrder(box, order, `${next} ${boardParams(deferred)}`);
  const byId = useMemo(() => new Map(rows.map((agent) => [agent.id, agent])), [rows]);
  const agents = held.order.flatMap(({ ids }) => ids).flatMap((id) => byId.get(id) ?? []);
  const picked = agents.filter(({ id }) => selected.has(id));
  const select = (id: string, isSelected: boolean, isRange = false) =>
    selectAll(rangeTo(id, isRange ? agents.map(({ id }) => id) : []), isSelected);
  const latest = useLatest(select);
  const onSelect = useCallback((...of: Parameters<typeof select>) => latest.current(...of), [latest]);
  const mayAct = useMayAct();
  /** Null until the reader first asks to stop. */
  const [asksToStop, setAsksToStop] = useState<boolean | null>(null);
  useBoardKeys({
    box,
    field,
    onToggle: (id) => select(id, !selected.has(id)),
    onClear: () => {
      const { sort, isReversed, columns } = query;
      const unfiltered = { ...UNFILTERED_BOARD, sort, isReversed, columns };
      if (picked.length > 0) selectOnly([]);
      else if (boardParams(query) !== boardParams(unfiltered)) setQuery(unfiltered);
      else return false;
    },
  });
  const counts = useCounts();
  const all = counts?.agents.toLocaleString('en');
  // Before the order is released, the list shows the rows of the former one.
  const shown =
    (counts && listedCount(counts, deferred)?.toLocaleString('en')) ??
    `${agents.length.toLocaleString('en')}${next === null ? '' : '+'}`;
  const isSearched = serverQuery !== '';
  const loadsRest = next !== null && rows.length < MAX_LOADED && state.error === null;
  const onClear = () =>
    setQuery(query.text.trim() === '' ? { ...UNFILTERED_BOARD, columns: query.columns } : { ...query, text: '' });
  const onColumns = (next: Sort[] | null) => {
    if (query.columns !== null) setQuery({ ...query, columns: next });
    else store(next?.join('.') ?? '');
  };
  return (
    <div className="@container">
      <div className="relative flex flex-col-reverse @7xl:flex-row @7xl:items-start @7xl:gap-10">
        <div ref={box} tabIndex={-1} className="min-w-0 focus-quiet @7xl:max-w-[1200px] @7xl:flex-1">
          <div className="flex-wrap items-center gap-x-0.75 gap-y-1 text-2xs text-ink-3 @2xl:flex @2xl:pb-2">
            <div className="flex flex-1 text-sm @max-2xl:mr-24 @2xl:mr-2 @2xl:min-w-40 @2xl:max-w-sm">
              <ListSearch
                what="agents"
                shortcut="list.search"
                field={field}
                value={query.text}
                onChange={(text) => setQuery({ ...query, text })}
              />
            </div>
            {counts !== undefined && (
              <BoardFilter
                agents={rows}
                isWhole={next === null}
                counts={counts}
                query={query}
                onQuery={setQuery}
                end={
                  mayAct && (
                    <button
                      type="button"
                      aria-haspopup="dialog"
                      aria-expanded={asksToStop === true}
                      title={shown === all ? undefined : `Only the ${plural(agents.length, 'listed agent')}`}
                      onClick={() => setAsksToStop(true)}
                      className="hit tabular min-h-6 whitespace-nowrap text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
                    >
                      Stop all {agents.length.toLocaleString('en')}…
                    </button>
                  )
                }
                tools={
                  <>
                    <BoardSort
                      sort={query.sort}
                      isReversed={query.isReversed}
                      onSort={(sort, isReversed) => setQuery({ ...query, sort, isReversed })}
                    />
                    <button
                      ref={columnsButton}
                      type="button"
                      aria-haspopup="dialog"
                      aria-expanded={choosesColumns}
                      onClick={() => setChoosesColumns(!choosesColumns)}
                      className="hit hidden text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink @4xl:inline"
                    >
                      Columns
                    </button>
                    <ViewsButton
                      params={boardParams(query)}
                      savedParams={boardParams({ ...query, columns: chosenColumns })}
                    />
                  </>
                }
              >
                <span className="flex flex-auto items-center gap-x-1 pl-1">
                  {/* As wide as with a filter, so that nothing moves. */}
                  <span
                    role="status"
                    data-widest={`${all} of ${all} agents`}
                    className="tabular text-ink-3 before:invisible before:block before:h-0 before:content-[attr(data-widest)]"
                  >
                    {shown !== all && `${shown} of `}
                    {all} {counts.agents === 1 ? 'agent' : 'agents'}
                  </span>
                  <HeldChanges moved={held.moved} added={held.added} onShow={held.release} />
                </span>
              </BoardFilter>
            )}
          </div>
          {choosesColumns && (
            <OnDemand
              code={chooserCode}
              name="The columns"
              props={{
                button: columnsButton,
                columns,
                onColumns,
                onClose: () => setChoosesColumns(false),
              }}
            />
          )}
          {/* biome-ignore lint/a11y/useSemanticElements: see its rows */}
          <div
            role="table"
            aria-label="Agents"
            aria-rowcount={agents.length + 1}
            style={{ '--columns': grid } as CSSProperties}
          >
            <BoardHead
              columns={columns}
              query={query}
              onSort={(sort) => setQuery({ ...query, sort, isReversed: query.sort === sort && !query.isReversed })}
              isAll={picked.length > 0 && picked.length === agents.length}
              onAll={(isAll) => selectOnly(isAll ? agents.map(({ id }) => id) : [])}
            />
            <BoardRows agents={agents} columns={columns} selected={selected} onSelect={onSelect} />
          </div>
          {loadsRest && (
            <p role="status" className="py-3 text-2xs text-ink-3">
              Loading the other agents: {rows.length.toLocaleString('en')} of {all}…
            </p>
          )}
          {(isSearched || !loadsRest) && (
            <ListEnd
              state={isSearched ? search : state}
              listed={isSearched || agents.length === 0 ? agents.length : rows.length}
              count={isSearched ? (search.found?.count ?? 0) : agents.length === 0 ? undefined : counts?.agents}
              what="agents"
              search={isSearched || agents.length === 0 ? { text: query.text, onClear } : undefined}
            />
          )}
          <div className="sticky bottom-0 z-10">
            {asksToStop !== null && (
              <OnDemand
                code={stopCode}
                name="The stop dialog"
                props={{
                  agents,
                  areAll: counts !== undefined && agents.length >= counts.agents,
                  isAsking: asksToStop,
                  onAnswer: () => setAsksToStop(false),
                }}
              />
            )}
            {picked.length > 0 && (
              <OnDemand
                code={selectionCode}
                name="The bar for selected agents"
                props={{
                  agents: picked,
                  total: agents.length,
                  onAll: () => selectOnly(agents.map(({ id }) => id)),
                  onNone: () => selectOnly([]),
                }}
              />
            )}
          </div>
        </div>
        <BoardActivity />
      </div>
    </div>
  );
}

const chooserCode = new CodeOnDemand(async () => (await import('./column-chooser')).ColumnChooser);
const chartsCode = new CodeOnDemand(async () => (await import('./fleet-charts')).FleetCharts);

/**
 * The charts beside or above the board. Folded, their heading is beside the search. The browser stores the choice for
 * wide screens. On others they push the agents out of view, and start folded.
 */
function BoardActivity() {
  const [chosen, choose] = useStored('fold-activity');
  const [isOpenAbove, openAbove] = useState(false);
  const isWide = useMedia('(min-width: 1280px)');
  const isKnown = useHydrated();
  const isOpen = isWide ? chosen !== 'folded' : isOpenAbove;
  return (
    <section
      aria-label="Activity"
      className={clsx(
        '@7xl:sticky @7xl:top-16',
        isOpen ? 'pb-3 @7xl:w-[300px]' : isKnown ? '@max-7xl:absolute' : 'max-xl:absolute xl:pb-3',
        'top-0 right-0',
      )}
    >
      <h2
        className={clsx(
          'flex items-center font-medium text-xs',
          isOpen ? 'pb-1' : 'h-8 pointer-coarse:h-11',
          !isKnown && 'xl:h-auto xl:pb-1',
        )}
      >
        <FoldButton
          isOpen={isOpen}
          onToggle={() => (isWide ? choose(isOpen ? 'folded' : 'open') : openAbove(!isOpen))}
          className="hover:text-accent"
        >
          Activity
        </FoldButton>
      </h2>
      {/* The server reserves the usual height, so nothing moves. */}
      {!isKnown && <div className="hidden min-h-[166px] xl:block @7xl:w-[300px]" />}
      {isKnown && isOpen && (
        <div className="xl:min-h-[166px]">
          <OnDemand code={chartsCode} name="The charts" props={{}} />
        </div>
      )}
    </section>
  );
}
