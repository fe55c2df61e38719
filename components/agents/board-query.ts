'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { agentText, searchWords } from '@interlude/protocol/list-search';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { useEffect, useState } from 'react';
import { hostOf, providerOf, standingCounts } from './board-agent';
import { SORTS, type Sort } from './board-columns';

/** A view of the board: which agents, in which order. The address says it, so that a link is a saved view. */
export interface BoardQuery {
  text: string;
  /** Any session in any of these; none: whatever they do. */
  states: readonly SessionState[];
  provider: string | null;
  host: string | null;
  showsRetired: boolean;
  sort: Sort;
  isReversed: boolean;
}

export const WHOLE_BOARD: BoardQuery = {
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

export function boardQuery(params: URLSearchParams): BoardQuery {
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
  const said = `${agentText(agent)}\n${[providerOf(agent).name, hostOf(agent)].join('\n').toLowerCase()}`;
  return searchWords(text).every((word) => said.includes(word));
}

function isInAny(agent: AgentSummary, states: readonly SessionState[]): boolean {
  const counts = standingCounts(agent);
  return states.some((state) => counts[state] > 0);
}

/** The view in the address. Back undoes a filter, but not each letter. */
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
