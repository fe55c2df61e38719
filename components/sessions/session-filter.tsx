'use client';

import { withBasePath, withoutBasePath } from '@interlude/protocol/base-path.mjs';
import type { FleetCounts } from '@interlude/protocol/inbox';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { countedStateOf } from '@interlude/protocol/session-predicates';
import { AGENT_STATES, type AgentState, LISTED_STATES } from '@interlude/protocol/session-states';
import { clsx } from 'clsx';
import { X } from 'lucide';
import { useEffect, useState } from 'react';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { useStrip } from '@/components/ui/list-controls';
import { Name } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { GROUP_WORD, STATE_GLYPH } from './session-labels';

/** Filters by state, with the number of sessions in each, and by agent. One line that scrolls, so a new state moves no row. */
export function SessionFilter(props: {
  query: SessionQuery;
  counts: FleetCounts['groups'];
  numbers: Partial<FleetCounts['groups']> | null;
  /** Shows the words for the states even where the list is narrow. */
  hasWords: boolean;
  onQuery: (query: SessionQuery) => void;
}) {
  const { query, counts, numbers, hasWords, onQuery } = props;
  const { states, agentId } = query;
  const strip = useStrip(`${states} ${agentId}`);
  return (
    <div
      ref={strip}
      className={clsx(
        'strip shrink-0 gap-1 px-4 pt-2 pointer-coarse:py-0 pb-1 text-2xs',
        hasWords ? 'scroll-sideways' : 'icon-chips',
      )}
    >
      <StateChips
        legend="Show only"
        all={AGENT_STATES}
        states={states}
        counts={counts}
        numbers={numbers}
        onStates={(wanted) => onQuery({ ...query, states: wanted })}
      />
      {agentId !== null && (
        <button
          type="button"
          aria-label={`Only sessions of ${quoted(agentId)}: show all agents`}
          onClick={() => onQuery({ ...query, agentId: null })}
          className="hit flex h-6 max-w-full items-center self-center gap-1 rounded-full border border-ink bg-raised px-2"
        >
          <span className="truncate">
            <Name text={agentId} />
          </span>
          <Icon of={X} size={12} className="shrink-0" />
        </button>
      )}
    </div>
  );
}

/** Toggles for states, with counts. States without rows are left out. */
export function StateChips<State extends AgentState>(props: {
  legend: string;
  /** All states, in display order. */
  all: readonly State[];
  states: readonly State[];
  counts: Record<State, number>;
  /** Null if another filter applies, for which they are unknown. */
  numbers: Partial<Record<State, number | string>> | null;
  /** Explains the number of failures. */
  failedTitle?: string | undefined;
  onStates: (states: State[]) => void;
}) {
  const { legend, all, states, counts, numbers, failedTitle, onStates } = props;
  const toggle = (state: State) => {
    const isOn = states.includes(state);
    onStates(all.filter((one) => (one === state ? !isOn : states.includes(one))));
  };
  return (
    <fieldset className="contents">
      <legend className="sr-only">{legend}</legend>
      {all
        .filter((state) => counts[state] > 0 || states.includes(state))
        .map((state) => (
          <label
            key={state}
            title={(state === 'failed' && failedTitle) || GROUP_WORD[state]}
            className="group/on flex shrink-0 items-center"
          >
            <input
              type="checkbox"
              checked={states.includes(state)}
              onChange={() => toggle(state)}
              className="sr-only"
            />
            <span className="flex h-6 w-full items-center justify-center gap-1 whitespace-nowrap rounded-full border border-line px-1.5 text-ink-2 group-hover/on:text-ink group-has-checked/on:border-ink group-has-checked/on:bg-raised group-has-focus-visible/on:outline-2">
              <Glyph name={STATE_GLYPH[state]} isStill />
              <span className="state-word">{GROUP_WORD[state]}</span>
              {numbers && <span className="tabular text-ink-3">{(numbers[state] ?? 0).toLocaleString('en')}</span>}
            </span>
          </label>
        ))}
    </fieldset>
  );
}

/** A filter of sessions. Without states, sessions in every state pass. */
interface SessionQuery {
  text: string;
  states: readonly AgentState[];
  agentId: string | null;
}

export const UNFILTERED: SessionQuery = { text: '', states: [], agentId: null };

/**
 * The query string of the start page; empty without a filter.
 *
 * @param stateName name of the parameter for states
 */
export function paramsOf({ text, states, agentId }: SessionQuery, stateName = 'state'): string {
  const params = new URLSearchParams();
  const words = text.trim();
  if (words) params.set('q', words);
  for (const state of states) params.append(stateName, state);
  if (agentId !== null) params.set('agent', agentId);
  return params.toString();
}

/** The query string of a search with `GET /sessions`; empty without a filter. */
export function searchQueryOf(query: SessionQuery): string {
  const { states: wanted } = query;
  // The server's search does not distinguish seen failures.
  const states = wanted.length === 0 ? LISTED_STATES : wanted.flatMap((one) => (one === 'seen' ? FAILURES : one));
  return paramsOf(query) && paramsOf({ ...query, states }, 'listed');
}

/** The states that turn into `seen`. */
const FAILURES = ['failed', 'lost'] as const;

function queryOf(params: URLSearchParams): SessionQuery {
  const states = AGENT_STATES.filter((state) => params.getAll('state').includes(state));
  return { text: params.get('q') ?? '', states, agentId: params.get('agent') };
}

/** True if a session matches the filter, apart from its text. */
export function matchesFilter(session: SessionSummary, { states, agentId }: SessionQuery): boolean {
  const hasState = states.length === 0 || states.includes(countedStateOf(session));
  return hasState && (agentId === null || agentId === session.agentId);
}

/**
 * The filter, kept from page to page. The start page keeps it in its URL, so it can be linked. The Back button undoes a
 * filter, not each typed letter.
 */
export function useSessionQuery(home: boolean, first: URLSearchParams) {
  const [query, setQuery] = useState(() => (home ? queryOf(first) : UNFILTERED));
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
