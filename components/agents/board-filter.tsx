'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { noSessions, SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { useMemo } from 'react';
import { StateChips } from '@/components/sessions/state-chips';
import { nameText } from '@/components/ui/verbatim';
import { hostOf, providerOf, standingCounts } from './board-agent';
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

/** How many are not retired and have a session that stands so, and how many are retired. */
function tally(agents: readonly AgentSummary[]): { counts: Record<SessionState, number>; retired: number } {
  const counts = noSessions();
  let retired = 0;
  for (const agent of agents) {
    const standing = standingCounts(agent);
    if (agent.retiredAt !== null) retired += 1;
    else for (const state of SESSION_STATES) if (standing[state] > 0) counts[state] += 1;
  }
  return { counts, retired };
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
      className="h-6 max-w-44 rounded border border-line bg-ground px-1 text-ink-2"
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
