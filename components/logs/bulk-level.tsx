'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { refusalOf } from '@interlude/protocol/takes';
import { useState } from 'react';
import { forEachLimited } from '@/components/live/fetch-json';
import { Name } from '@/components/ui/name';
import { LevelLine } from './level-status';
import { type LevelChoice, LevelRadios, requestLevel } from './level-switch';

type Asked = ReadonlyMap<string, 'asking' | 'asked' | { failure: string }>;

/** Sets one log level for several agents and shows the outcome of each. */
export function BulkLevel({ agents }: { agents: readonly AgentSummary[] }) {
  const { choice, asked, ask } = useRequestMany();
  const failed = agents.filter(({ id }) => typeof asked.get(id) === 'object');
  const told = agents.filter(({ id }) => asked.has(id));
  const reasons = new Map(agents.map((agent) => [agent.id, whyNot(agent)]));
  const able = agents.filter(({ id }) => reasons.get(id) === null);
  const unable = agents.length - able.length;
  return (
    <div className="min-w-0 sm:flex-1">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-xs">
        <LevelRadios
          asked={sameOf(agents.map(({ logLevel }) => logLevel.desired?.level ?? logLevel.level))}
          written={sameOf(agents.map(({ logLevel }) => logLevel.level))}
          isOff={able.length === 0}
          onPick={(level) => ask(able, { level })}
        />
        <button
          type="button"
          disabled={able.length === 0}
          onClick={() => ask(able, { level: null })}
          className="text-ink-3 underline hover:text-ink disabled:no-underline"
        >
          Back to default
        </button>
        {unable > 0 && (
          <span className="text-ink-2">
            {able.length === 0 ? 'Can’t be asked' : `${unable} of ${agents.length} can’t be asked`}:{' '}
            {[...new Set([...reasons.values()].filter((reason) => reason !== null))].join('; ')}.
          </span>
        )}
        {told.length > 0 && (
          <span role="status" className={failed.length > 0 ? 'text-failed' : 'text-ink-2'}>
            {summary(told, asked)}
          </span>
        )}
        {choice !== null && failed.length > 0 && (
          <button type="button" onClick={() => ask(failed, choice)} className="text-ink-3 underline hover:text-ink">
            Ask those again
          </button>
        )}
      </div>
      {told.length > 0 && (
        <ul aria-label="What came of it" className="mt-1.5 max-h-40 overflow-y-auto text-xs">
          {told.map((agent) => (
            <li key={agent.id} className="flex flex-col gap-x-3 py-0.5 sm:flex-row">
              <span className="truncate font-medium sm:w-40 sm:shrink-0">
                <Name text={agent.id} />
              </span>
              <Outcome agent={agent} asked={asked.get(agent.id)} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Outcome({ agent, asked }: { agent: AgentSummary; asked: ReturnType<Asked['get']> }) {
  if (asked === 'asking') return <span className="text-ink-3">asking…</span>;
  if (typeof asked === 'object') return <span className="text-failed">Not asked: {asked.failure}</span>;
  return <LevelLine agent={agent} className="min-w-0" />;
}

function useRequestMany() {
  const [choice, setChoice] = useState<LevelChoice | null>(null);
  const [asked, setAsked] = useState<Asked>(new Map());
  const ask = async (agents: readonly AgentSummary[], wish: LevelChoice) => {
    const set = (ids: readonly string[], to: 'asking' | 'asked' | { failure: string }) =>
      setAsked((before) => new Map([...before, ...ids.map((id) => [id, to] as const)]));
    setChoice(wish);
    const ids = agents.map(({ id }) => id);
    set(ids, 'asking');
    await forEachLimited(ids, async (id) => {
      const answer = await requestLevel(id, wish);
      set([id], answer.kind === 'asked' ? 'asked' : { failure: answer.reason });
    });
  };
  return { choice, asked, ask: (agents: readonly AgentSummary[], wish: LevelChoice) => void ask(agents, wish) };
}

/** Why the agent can't change its level; null if it can, now or when its runner is back. */
function whyNot({ connectedSince, status }: AgentSummary): string | null {
  if (connectedSince === null) return 'no runner listens';
  return refusalOf(status, 'log-level.set')?.reason ?? null;
}

/** `2 of 3 confirmed, 1 waits` */
function summary(agents: readonly AgentSummary[], asked: Asked): string {
  const counts = new Map<string, number>();
  for (const agent of agents) {
    const word = wordOf(agent, asked.get(agent.id));
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const confirmed = counts.get('confirmed') ?? 0;
  counts.delete('confirmed');
  const rest = [...counts].map(([word, count]) => `${count} ${word}`);
  return [`${confirmed} of ${agents.length} confirmed`, ...rest].join(', ');
}

function wordOf({ logLevel, connection }: AgentSummary, asked: ReturnType<Asked['get']>): string {
  if (typeof asked === 'object') return 'not asked';
  if (asked === 'asking') return 'asking';
  const state = logLevel.desired?.state ?? 'confirmed';
  if (state !== 'requested') return state;
  return connection === 'away' ? 'waiting for the agent' : 'requested';
}

function sameOf<Value>(values: readonly Value[]): Value | null {
  const [first = null] = values;
  return values.every((value) => value === first) ? first : null;
}
