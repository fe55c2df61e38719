'use client';

import { X } from 'lucide';
import type { CountsByState } from '@/components/live/row-counts';
import { Icon } from '@/components/ui/icon';
import { Name } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import type { SessionQuery } from './session-query';
import { StateChips } from './state-chips';

/** Which states are shown, with how many sessions there are in each, and of which agent. */
export function SessionFilter(props: {
  query: SessionQuery;
  counts: CountsByState;
  onQuery: (query: SessionQuery) => void;
}) {
  const { query, counts, onQuery } = props;
  const { states, agentId } = query;
  return (
    <div className="mx-4 mt-2 flex flex-wrap gap-1 text-2xs">
      <StateChips
        legend="Show only"
        states={states}
        counts={counts}
        onStates={(wanted) => onQuery({ ...query, states: wanted })}
      />
      {agentId !== null && (
        <button
          type="button"
          aria-label={`Sessions of ${quoted(agentId)} only: show those of every agent`}
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
