'use client';

import { withBasePath, withoutBasePath } from '@interlude/protocol/base-path.mjs';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { useEffect, useState } from 'react';

/** Which sessions are wanted: in any of these states (none: in any), of an agent, with words. */
export interface SessionQuery {
  text: string;
  states: readonly SessionState[];
  agentId: string | null;
}

export const EVERY_SESSION: SessionQuery = { text: '', states: [], agentId: null };

/** The same as arguments of `GET /sessions`, and of the start page; empty if every session is wanted. */
export function paramsOf({ text, states, agentId }: SessionQuery): string {
  const params = new URLSearchParams();
  const words = text.trim();
  if (words) params.set('q', words);
  for (const state of states) params.append('state', state);
  if (agentId !== null) params.set('agent', agentId);
  return params.toString();
}

/** What the server is asked: of an agent alone it answers without counts, of its sessions in any state with them. */
export function askedOf(query: SessionQuery): string {
  const isOfAgent = query.agentId !== null && query.states.length === 0;
  return paramsOf(isOfAgent ? { ...query, states: SESSION_STATES } : query);
}

export function queryOf(params: URLSearchParams): SessionQuery {
  const states = SESSION_STATES.filter((state) => params.getAll('state').includes(state));
  return { text: params.get('q') ?? '', states, agentId: params.get('agent') };
}

/** Whether a session is in the wanted states and of the wanted agent. */
export function passes({ state, agentId }: SessionSummary, query: SessionQuery): boolean {
  return (
    (query.states.length === 0 || query.states.includes(state)) && (query.agentId === null || query.agentId === agentId)
  );
}

/**
 * What is wanted, which stays from page to page. On the start page the address says it: a link to it finds the same,
 * and Back undoes a filter, but not each letter.
 */
export function useSessionQuery(home: boolean, first: URLSearchParams) {
  const [query, setQuery] = useState(() => (home ? queryOf(first) : EVERY_SESSION));
  const params = paramsOf(query);
  useEffect(() => {
    if (!home) return;
    const follow = () => {
      if (withoutBasePath(location.pathname) === '/') setQuery(queryOf(new URLSearchParams(location.search)));
    };
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, [home]);
  useEffect(() => {
    if (home && location.search.slice(1) !== params) history.replaceState(null, '', pathOf(params));
  }, [home, params]);
  const change = (next: SessionQuery) => {
    const isTyped = paramsOf({ ...next, text: '' }) === paramsOf({ ...query, text: '' });
    if (home && !isTyped) history.pushState(null, '', pathOf(paramsOf(next)));
    setQuery(next);
  };
  return [query, change] as const;
}

function pathOf(params: string): string {
  return withBasePath(params === '' ? '/' : `/?${params}`);
}
