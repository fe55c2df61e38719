'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { FleetCounts } from '@interlude/protocol/inbox';
import { agentText, searchWords } from '@interlude/protocol/list-search';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { AGENT_STATES, type AgentState, noListed } from '@interlude/protocol/session-states';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { StateChips } from '@/components/sessions/session-filter';
import { useStrip } from '@/components/ui/list-controls';
import { nameText } from '@/components/ui/verbatim';
import { hostOf, providerOf } from './board-agent';
import { byName, SORTS, type Sort } from './board-columns';

/** Filters agents, and can include retired ones. On a narrow board, a scrolling line below the search. */
export function BoardFilter(props: {
  /** The loaded agents. */
  agents: readonly AgentSummary[];
  /** True if there are no others. */
  isWhole: boolean;
  counts: FleetCounts;
  query: BoardQuery;
  onQuery: (query: BoardQuery) => void;
  /** Sorting and columns. */
  tools: ReactNode;
  /** The last control, also on a narrow board. */
  end: ReactNode;
  children: ReactNode;
}) {
  const { agents, isWhole, counts, query, onQuery, tools, end, children } = props;
  const { states, showsRetired } = query;
  const isPicked = !hasServerCounts(query);
  const { both, ...byState } = useMemo(
    () => (isPicked && isWhole ? tally(agents, { ...query, states: [] }) : chipCounts(counts, showsRetired)),
    [agents, isPicked, isWhole, counts, query, showsRetired],
  );
  const numbers = isWhole || !isPicked ? byState : null;
  const [failed, also] = [byState.failed - both, both].map((count) => count.toLocaleString('en'));
  const retired = sumOf(counts.retiredStates);
  const strip = useStrip(states.join());
  return (
    <div
      ref={strip}
      className="strip scroll-sideways -mx-4 items-center gap-1 px-4 pb-2 pointer-coarse:pb-0 @2xl:contents"
    >
      {/* leaves room for the heading of the folded charts */}
      <div className="flex min-w-0 items-center gap-x-3 @max-2xl:order-1 @2xl:pr-20 @7xl:pr-0">
        <BoardPicks agents={agents} query={query} onQuery={onQuery} />
        {tools}
      </div>
      <span className="w-full @max-2xl:hidden" />
      <StateChips
        legend="Show only agents in"
        all={AGENT_STATES}
        states={states}
        counts={byState}
        // Otherwise the chips would add up to more than all agents.
        numbers={numbers && both > 0 ? { ...numbers, failed: `${failed}+${also}` } : numbers}
        failedTitle={numbers && both > 0 ? `${failed} failed, ${also} more also need input` : undefined}
        onStates={(wanted) => onQuery({ ...query, states: wanted })}
      />
      {(retired > 0 || showsRetired) && (
        <label className="flex min-h-6 items-center gap-1.5 pl-2 text-ink-2">
          <input
            type="checkbox"
            checked={showsRetired}
            onChange={() => onQuery({ ...query, showsRetired: !showsRetired })}
            className="accent-ink"
          />
          {retired.toLocaleString('en')} retired
        </label>
      )}
      <div className="@max-2xl:-order-1 flex items-center gap-x-2 @max-2xl:pr-2 @2xl:contents">{children}</div>
      <div className="ml-auto @max-2xl:-order-1 @max-2xl:pr-3">{end}</div>
    </div>
  );
}

/** Filters agents by provider and host. */
function BoardPicks(props: Pick<Parameters<typeof BoardFilter>[0], 'agents' | 'query' | 'onQuery'>) {
  const { agents, query, onQuery } = props;
  return (
    <>
      <Pick
        label="Provider"
        all="Any provider"
        value={query.provider}
        values={agents.map((agent) => providerOf(agent).name)}
        onPick={(provider) => onQuery({ ...query, provider })}
      />
      <Pick
        label="Host"
        all="Any host"
        value={query.host}
        values={agents.map(hostOf)}
        onPick={(host) => onQuery({ ...query, host })}
      />
    </>
  );
}

/**
 * The number of agents that the filter lists in each state. Any unseen failure counts in `failed`, too: `both` is the
 * number of agents in two states.
 */
function tally(agents: readonly AgentSummary[], query: BoardQuery) {
  const counts = { ...noListed(), both: 0 };
  for (const agent of agents) {
    if (!isOnBoard(agent, query)) continue;
    for (const state of AGENT_STATES) if (isIn(agent, state)) counts[state] += 1;
    if (agent.state !== 'failed' && isIn(agent, 'failed')) counts.both += 1;
  }
  return counts;
}

/** True if the filter uses only states and retirement, which the server counts. */
function hasServerCounts({ text, provider, host }: BoardQuery): boolean {
  return text.trim() === '' && provider === null && host === null;
}

/** The server's number of agents in each state. */
function boardCounts({ agentStates, retiredStates }: FleetCounts, showsRetired: boolean) {
  if (!showsRetired) return agentStates;
  const sums = Object.entries(retiredStates).map(([state, count]) => [state, count + agentStates[state as AgentState]]);
  return Object.fromEntries(sums) as FleetCounts['agentStates'];
}

/** The server's agent counts for the state chips. `both` is the number of agents that two chips count. */
function chipCounts(counts: FleetCounts, showsRetired: boolean) {
  const byState = boardCounts(counts, showsRetired);
  // A server of an older version, during an update, does not send it.
  const { active, retired } = counts.alsoFailed ?? { active: 0, retired: 0 };
  const both = active + (showsRetired ? retired : 0);
  return { ...byState, failed: byState.failed + both, both };
}

/** The server's number of agents that the filter lists; null if it counts only the states. */
export function listedCount(counts: FleetCounts, query: BoardQuery): number | null {
  if (!hasServerCounts(query)) return null;
  const { states, showsRetired } = query;
  if (states.length === 0) return sumOf(boardCounts(counts, showsRetired));
  // An agent that needs input and has a failed session counts once.
  const byState = (states.includes('needs-input') ? boardCounts : chipCounts)(counts, showsRetired);
  return states.reduce((sum, state) => sum + byState[state], 0);
}

function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export const PICK =
  'h-6 max-w-44 rounded border border-line bg-ground px-1 text-2xs text-ink-2 pointer-coarse:h-11 pointer-coarse:border-transparent pointer-coarse:px-0';

/** Picks one of the given values. Hidden if there are fewer than two. */
function Pick(props: {
  label: string;
  all: string;
  value: string | null;
  values: (string | null)[];
  onPick: (value: string | null) => void;
}) {
  const { label, all, value, values, onPick } = props;
  const options = [...new Set([...values, value].filter((one) => one !== null))].sort(byName);
  if (options.length < 2 && value === null) return null;
  return (
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onPick(event.target.value === '' ? null : event.target.value)}
      className={PICK}
    >
      <option value="">{all}</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {nameText(one)}
        </option>
      ))}
    </select>
  );
}

/** A view of the board. The URL contains it, so a link is a saved view. */
export interface BoardQuery {
  text: string;
  /** Agents in any of these states; empty: all agents. */
  states: readonly AgentState[];
  provider: string | null;
  host: string | null;
  showsRetired: boolean;
  sort: Sort;
  isReversed: boolean;
  /** Columns beside the name; null: those that this browser shows. */
  columns: readonly Sort[] | null;
}

export const UNFILTERED_BOARD: BoardQuery = {
  text: '',
  states: [],
  provider: null,
  host: null,
  showsRetired: false,
  sort: 'state',
  isReversed: false,
  columns: null,
};

export function boardParams(query: BoardQuery): string {
  const { text, states, provider, host, showsRetired, sort, isReversed, columns } = query;
  const params = new URLSearchParams();
  if (text.trim()) params.set('q', text.trim());
  for (const state of states) params.append('state', state);
  if (provider !== null) params.set('provider', provider);
  if (host !== null) params.set('host', host);
  if (showsRetired) params.set('retired', '1');
  if (sort !== 'state' || isReversed) params.set('sort', `${isReversed ? '-' : ''}${sort}`);
  if (columns !== null) params.set('columns', columns.join('.'));
  return params.toString();
}

function boardQuery(params: URLSearchParams): BoardQuery {
  const sorted = params.get('sort') ?? '';
  return {
    text: params.get('q') ?? '',
    states: AGENT_STATES.filter((state) => params.getAll('state').includes(state)),
    provider: params.get('provider'),
    host: params.get('host'),
    showsRetired: params.get('retired') === '1',
    sort: SORTS.find((sort) => sort === sorted.replace(/^-/, '')) ?? 'state',
    isReversed: sorted.startsWith('-'),
    columns: columnsFrom(params.get('columns')),
  };
}

/** True if a chip lists the agent: by its most urgent state, or by any unseen failure. */
function isIn({ state, listedStates }: AgentSummary, wanted: AgentState): boolean {
  return state === wanted || (wanted === 'failed' && listedStates.failed > 0);
}

export function isOnBoard(agent: AgentSummary, query: BoardQuery): boolean {
  const { text, states, provider, host, showsRetired } = query;
  if (agent.retiredAt !== null && !showsRetired) return false;
  if (states.length > 0 && !states.some((state) => isIn(agent, state))) return false;
  if (provider !== null && providerOf(agent).name !== provider) return false;
  if (host !== null && hostOf(agent) !== host) return false;
  const words = searchWords(text);
  if (words.length === 0) return true;
  const searched = `${agentText(agent)}\n${[providerOf(agent).name, hostOf(agent)].join('\n').toLowerCase()}`;
  return words.every((word) => searched.includes(word));
}

/** Columns by name, in display order; null if none are given. */
export function columnsFrom(text: string | null): Sort[] | null {
  const named = text?.split('.');
  return named === undefined ? null : SORTS.filter((sort) => sort !== 'name' && named.includes(sort));
}

/**
 * Keeps the view in the URL. The Back button undoes a filter, not each typed letter.
 *
 * @param shown the URL's parameters as Next last rendered them: later than `history`, so that an own change arrives when
 * the view may have changed again. Any other change is a link or the Back button.
 */
export function useBoardQuery(shown: URLSearchParams) {
  const search = shown.toString();
  const [{ query, seen, written }, set] = useState<ViewInUrl>(() => ({
    query: boardQuery(shown),
    seen: search,
    written: [],
  }));
  const params = boardParams(query);
  if (seen !== search) {
    const own = written.indexOf(search);
    set({
      query: own >= 0 || params === search ? query : boardQuery(shown),
      seen: search,
      written: own >= 0 ? written.slice(own + 1) : [],
    });
  }
  useEffect(() => {
    if (location.search.slice(1) !== params) history.replaceState(null, '', addressOf(params));
  }, [params]);
  const change = (next: BoardQuery) => {
    const nextParams = boardParams(next);
    if (next.text === query.text) history.pushState(null, '', addressOf(nextParams));
    set({ query: next, seen, written: nextParams === params ? written : [...written, nextParams] });
  };
  return [query, change] as const;
}

interface ViewInUrl {
  query: BoardQuery;
  /** The parameters that were last shown. */
  seen: string;
  /** Own changes that were not shown yet, oldest first. */
  written: readonly string[];
}

function addressOf(params: string): string {
  return withBasePath(params === '' ? '/agents' : `/agents?${params}`);
}
