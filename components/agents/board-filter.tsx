'use client';

import { glyphOf, STATE_WORD } from '@/components/sessions/session-words';
import { Glyph } from '@/components/ui/glyph';
import { nameText } from '@/components/ui/verbatim';
import { SESSION_STATES, type SessionState } from '@/lib/protocol/agent-state';
import type { AgentSummary } from '@/lib/protocol/read-models';
import { hostOf, providerOf } from './board-agent';
import type { BoardQuery } from './board-query';
import { byName } from './by-name';

/** Which agents are shown: of a state, a provider, a host; and those that are retired. */
export function BoardFilter(props: {
  agents: readonly AgentSummary[];
  query: BoardQuery;
  onQuery: (query: BoardQuery) => void;
}) {
  const { agents, query, onQuery } = props;
  const { states, provider, host, showsRetired } = query;
  const active = agents.filter(({ retiredAt }) => retiredAt === null);
  const retired = agents.length - active.length;
  const toggle = (state: SessionState) => {
    const isOn = states.includes(state);
    onQuery({ ...query, states: SESSION_STATES.filter((one) => (one === state ? !isOn : states.includes(one))) });
  };
  const inState = (state: SessionState) => active.filter(({ sessionStates }) => sessionStates[state] > 0).length;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 pb-2 text-2xs">
      <fieldset className="flex flex-wrap gap-1">
        <legend className="sr-only">Show only agents with a session in</legend>
        {SESSION_STATES.filter((state) => inState(state) > 0 || states.includes(state)).map((state) => (
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
            <span className="tabular text-ink-3">{inState(state).toLocaleString('en')}</span>
          </label>
        ))}
      </fieldset>
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
        <label className="flex items-center gap-1.5 text-ink-2">
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

/** One of what is there. With less than two there is nothing to pick. */
function Pick(props: {
  label: string;
  all: string;
  value: string | null;
  values: (string | null)[];
  onPick: (value: string | null) => void;
}) {
  const { label, all, value, values, onPick } = props;
  const there = [...new Set([...values, value].filter((one) => one !== null))].sort(byName);
  if (there.length < 2 && value === null) return null;
  return (
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onPick(event.target.value === '' ? null : event.target.value)}
      className="max-w-44 rounded border border-line bg-ground px-1 py-0.5 text-ink-2"
    >
      <option value="">{all}</option>
      {there.map((one) => (
        <option key={one} value={one}>
          {nameText(one)}
        </option>
      ))}
    </select>
  );
}
