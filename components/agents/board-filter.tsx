'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { agentText, searchWords } from '@interlude/protocol/list-search';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { noSessions, SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import { useEffect, useMemo, useState } from 'react';
import { StateChips } from '@/components/sessions/session-filter';
import { nameText } from '@/components/ui/verbatim';
import { hostOf, providerOf, stateCounts } from './board-agent';
import { byName, SORTS, type Sort } from './board-columns';

/** Filters agents by session state, provider, host and retirement. */
export function BoardFilter(props: {
  agents: readonly AgentSummary[];
  query: BoardQuery;
  onQuery: (query: BoardQuery) => void;
}) {
  const { agents, query, onQuery } = props;
  const { states, provider, host, showsRetired } = query;
  const { counts, retired } = useMemo(() => tally(agents), [agents]);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 pb-2 text-2xs">
      <div className="flex flex-wrap gap-1">
        <StateChips
          legend="Show only agents with a session in"
          states={states}
          counts={counts}
          onStates={(wanted) => onQuery({ ...query, states: wanted })}
        />
      </div>
      <Pick
        label="Provider"
        all="Any provider"
        value={provider}
        values={agents.map((agent) => providerOf(agent).name)}
        onPick={(picked) => onQuery({ ...query, provider: picked })}
      />
      <Pick
        label="Host"
        all="Any host"
        value={host}
        values={agents.map(hostOf)}
        onPick={(picked) => onQuery({ ...query, host: picked })}
      />
      {(retired > 0 || showsRetired) && (
        <label className="flex min-h-6 items-center gap-1.5 text-ink-2">
          <input
            type="checkbox"
            checked={showsRetired}
            onChange={() => onQuery({ ...query, showsRetired: !showsRetired })}
            className="accent-ink"
          />
          {retired.toLocaleString('en')} retired
        </label>
      )}
    </div>
  );
}

/** Counts active agents by session state, and retired agents. */
function tally(agents: readonly AgentSummary[]): { counts: Record<SessionState, number>; retired: number } {
  const counts = noSessions();
  let retired = 0;
  for (const agent of agents) {
    const listedState = stateCounts(agent);
    if (agent.retiredAt !== null) retired += 1;
    else for (const state of SESSION_STATES) if (listedState[state] > 0) counts[state] += 1;
  }
  return { counts, retired };
}

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
      className="h-6 max-w-44 rounded border border-line bg-ground px-1 text-ink-2"
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
  /** Agents with a session in any of these; empty: all agents. */
  states: readonly SessionState[];
  provider: string | null;
  host: string | null;
  showsRetired: boolean;
  sort: Sort;
  isReversed: boolean;
}

export const UNFILTERED_BOARD: BoardQuery = {
  text: '',
  states: [],
  provider: null,
  host: null,
  showsRetired: false,
  sort: 'name',
  isReversed: false,
};

export function boardParams({ text, states, provider, host, showsRetired, sort, isReversed }: BoardQuery): string {
  const params = new URLSearchParams();
  if (text.trim()) params.set('q', text.trim());
  for (const state of states) params.append('state', state);
  if (provider !== null) params.set('provider', provider);
  if (host !== null) params.set('host', host);
  if (showsRetired) params.set('retired', '1');
  if (sort !== 'name' || isReversed) params.set('sort', `${isReversed ? '-' : ''}${sort}`);
  return params.toString();
}

function boardQuery(params: URLSearchParams): BoardQuery {
  const sorted = params.get('sort') ?? '';
  return {
    text: params.get('q') ?? '',
    states: SESSION_STATES.filter((state) => params.getAll('state').includes(state)),
    provider: params.get('provider'),
    host: params.get('host'),
    showsRetired: params.get('retired') === '1',
    sort: SORTS.find((sort) => sort === sorted.replace(/^-/, '')) ?? 'name',
    isReversed: sorted.startsWith('-'),
  };
}

export function isOnBoard(agent: AgentSummary, query: BoardQuery): boolean {
  const { text, states, provider, host, showsRetired } = query;
  if (agent.retiredAt !== null && !showsRetired) return false;
  if (states.length > 0 && !isInAny(agent, states)) return false;
  if (provider !== null && providerOf(agent).name !== provider) return false;
  if (host !== null && hostOf(agent) !== host) return false;
  const searched = `${agentText(agent)}\n${[providerOf(agent).name, hostOf(agent)].join('\n').toLowerCase()}`;
  return searchWords(text).every((word) => searched.includes(word));
}

function isInAny(agent: AgentSummary, states: readonly SessionState[]): boolean {
  const counts = stateCounts(agent);
  return states.some((state) => counts[state] > 0);
}

/** Keeps the view in the URL. The Back button undoes a filter, not each typed letter. */
export function useBoardQuery(first: URLSearchParams) {
  const [query, setQuery] = useState(() => boardQuery(first));
  const params = boardParams(query);
  useEffect(() => {
    const follow = () => setQuery(boardQuery(new URLSearchParams(location.search)));
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  useEffect(() => {
    if (location.search.slice(1) !== params) history.replaceState(null, '', addressOf(params));
  }, [params]);
  const change = (next: BoardQuery) => {
    if (next.text === query.text) history.pushState(null, '', addressOf(boardParams(next)));
    setQuery(next);
  };
  return [query, change] as const;
}

function addressOf(params: string): string {
  return withBasePath(params === '' ? '/agents' : `/agents?${params}`);
}
