'use client';

import { X } from 'lucide';
import type { CountsByState } from '@/components/live/session-counts';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { SESSION_STATES, type SessionState } from '@/lib/protocol/agent-state';
import type { SessionQuery } from './session-query';
import { glyphOf, STATE_WORD } from './session-words';

/** Which states are shown, with how many sessions there are in each, and of which agent. */
export function SessionFilter(props: {
  query: SessionQuery;
  counts: CountsByState;
  onQuery: (query: SessionQuery) => void;
}) {
  const { query, counts, onQuery } = props;
  const { states, agentId } = query;
  const toggle = (state: SessionState) => {
    const isOn = states.includes(state);
    onQuery({ ...query, states: SESSION_STATES.filter((one) => (one === state ? !isOn : states.includes(one))) });
  };
  return (
    <div className="mx-4 mt-2 flex flex-wrap gap-1 text-2xs">
      <fieldset className="contents">
        <legend className="sr-only">Show only</legend>
        {SESSION_STATES.filter((state) => counts[state] > 0 || states.includes(state)).map((state) => (
          <label
            key={state}
            className="hit flex h-6 items-center gap-1 rounded-full border border-line px-2 text-ink-2 hover:text-ink has-checked:border-ink has-focus-visible:outline-2 has-checked:bg-raised"
          >
            <input
              type="checkbox"
              checked={states.includes(state)}
              onChange={() => toggle(state)}
              className="sr-only"
            />
            <Glyph name={glyphOf(state)} />
            {STATE_WORD[state]}
            <span className="tabular text-ink-3">{counts[state].toLocaleString('en')}</span>
          </label>
        ))}
      </fieldset>
      {agentId !== null && (
        <button
          type="button"
          aria-label={`Sessions of ${nameText(agentId)} only: show those of every agent`}
          onClick={() => onQuery({ ...query, agentId: null })}
          className="hit flex h-6 min-w-0 items-center gap-1 rounded-full border border-ink bg-raised px-2"
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
