'use client';

import { refusalOf } from '@interlude/protocol/agent-status-view';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { forEachLimited } from '@/components/live/for-each-limited';
import { Name } from '@/components/ui/name';
import { LevelLine } from './level-status';
import { type LevelChoice, LevelRadios, requestLevel } from './level-switch';

type Outcome = 'sending' | 'sent' | { failure: string };
type Outcomes = ReadonlyMap<string, Outcome>;

/** Sets one log level for several agents and shows the outcome of each. */
export function BulkLevel({ agents }: { agents: readonly AgentSummary[] }) {
  const { choice, outcomes, request } = useRequestMany();
  const failed = agents.filter(({ id }) => typeof outcomes.get(id) === 'object');
  const requested = agents.filter(({ id }) => outcomes.has(id));
  const reasons = new Map(agents.map((agent) => [agent.id, whyNot(agent)]));
  const able = agents.filter(({ id }) => reasons.get(id) === null);
  const unable = agents.length - able.length;
  return (
    <div className="min-w-0 sm:flex-1">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-xs">
        <span aria-hidden="true" className="text-ink-3">
          Log level
        </span>
        <LevelRadios
          requested={sameOf(agents.map(({ logLevel }) => logLevel.desired?.level ?? logLevel.level))}
          written={sameOf(agents.map(({ logLevel }) => logLevel.level))}
          isOff={able.length === 0}
          onPick={(level) => request(able, { level })}
        />
        <button
          type="button"
          disabled={able.length === 0}
          onClick={() => request(able, { level: null })}
          className="text-ink-3 underline hover:text-ink disabled:no-underline"
        >
          Back to default
        </button>
        {unable > 0 && (
          <span className="text-ink-2">
            {able.length === 0 ? 'Level can’t be changed' : `${unable} of ${agents.length} can’t be changed`}:{' '}
            {[...new Set([...reasons.values()].filter((reason) => reason !== null))].join('; ')}.
          </span>
        )}
        {requested.length > 0 && (
          <span role="status" className={failed.length > 0 ? 'text-failed' : 'text-ink-2'}>
            {summary(requested, outcomes)}
          </span>
        )}
        {choice !== null && failed.length > 0 && (
          <button type="button" onClick={() => request(failed, choice)} className="text-ink-3 underline hover:text-ink">
            Retry failed
          </button>
        )}
      </div>
      {requested.length > 0 && (
        <ul aria-label="Results" className="mt-1.5 max-h-40 overflow-y-auto text-xs">
          {requested.map((agent) => (
            <li key={agent.id} className="flex flex-col gap-x-3 py-0.5 sm:flex-row">
              <span className="truncate font-medium sm:w-40 sm:shrink-0">
                <Name text={agent.id} />
              </span>
              <AgentOutcome agent={agent} outcome={outcomes.get(agent.id)} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function AgentOutcome({ agent, outcome }: { agent: AgentSummary; outcome: Outcome | undefined }) {
  if (outcome === 'sending') return <span className="text-ink-3">requesting…</span>;
  if (typeof outcome === 'object') return <span className="text-failed">Failed: {outcome.failure}</span>;
  return <LevelLine agent={agent} className="min-w-0" />;
}

function useRequestMany() {
  const [choice, setChoice] = useState<LevelChoice | null>(null);
  const [outcomes, setOutcomes] = useState<Outcomes>(new Map());
  const send = async (agents: readonly AgentSummary[], level: LevelChoice) => {
    const set = (ids: readonly string[], to: Outcome) =>
      setOutcomes((before) => new Map([...before, ...ids.map((id) => [id, to] as const)]));
    setChoice(level);
    const ids = agents.map(({ id }) => id);
    set(ids, 'sending');
    await forEachLimited(ids, async (id) => {
      const result = await requestLevel(id, level);
      set([id], result.kind === 'sent' ? 'sent' : { failure: result.reason });
    });
  };
  return {
    choice,
    outcomes,
    request: (agents: readonly AgentSummary[], level: LevelChoice) => void send(agents, level),
  };
}

/** Reason the agent can't change its level; null if it can, now or when its runner is back. */
function whyNot({ connectedSince, status }: AgentSummary): string | null {
  if (connectedSince === null) return 'no runner has connected yet';
  return refusalOf(status, 'log-level.set')?.reason ?? null;
}

/** `2 of 3 confirmed, 1 waiting for the agent` */
function summary(agents: readonly AgentSummary[], outcomes: Outcomes): string {
  const counts = new Map<string, number>();
  for (const agent of agents) {
    const word = wordOf(agent, outcomes.get(agent.id));
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const confirmed = counts.get('confirmed') ?? 0;
  counts.delete('confirmed');
  const rest = [...counts].map(([word, count]) => `${count} ${word}`);
  return [`${confirmed} of ${agents.length} confirmed`, ...rest].join(', ');
}

function wordOf({ logLevel, connection }: AgentSummary, outcome: Outcome | undefined): string {
  if (typeof outcome === 'object') return 'failed';
  if (outcome === 'sending') return 'requesting';
  const state = logLevel.desired?.state ?? 'confirmed';
  if (state !== 'requested') return state;
  return connection === 'away' ? 'waiting for the agent' : 'requested';
}

function sameOf<Value>(values: readonly Value[]): Value | null {
  const [first = null] = values;
  return values.every((value) => value === first) ? first : null;
}
