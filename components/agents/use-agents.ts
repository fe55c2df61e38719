'use client';

import { comparePositions } from '@interlude/protocol/position';
import type {
  AgentDetail,
  AgentList,
  AgentSummary,
  SessionList,
  SessionSummary,
} from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import {
  applyUnlessReset,
  useFleet,
  useFleetQuery,
  useFleetStores,
  useInitialData,
  useMorePages,
} from '@/components/live/use-fleet';

/** Its rows as they are now, the rest as it was read. */
export type LiveAgent = Omit<AgentDetail, 'sessions'> & { sessions: readonly SessionSummary[] };

const PAGE = 100;
/** The ledger is read again at most this often while its agent is at work. */
const LEDGER_MS = 5_000;

const pageAfter = (after: string, signal?: AbortSignal) =>
  fetchJson<AgentList>(`/agents?${new URLSearchParams({ after, limit: String(PAGE) })}`, signal);

/** The agents that are loaded, and the way to the others. */
export function useAgents() {
  const list = useFleet(({ agents }) => agents.list(ALL));
  useFleetQuery({
    table: 'agents',
    kind: 'list',
    of: ALL,
    load: (signal) => pageAfter('0', signal),
    take: (fleet, page) => fleet.takeAgents(page),
  });
  const more = useMorePages({
    of: 'agents',
    next: list?.next,
    load: (after) => pageAfter(after),
    take: (fleet, page, after) => fleet.takeAgents(page, after),
  });
  return { list, more };
}

/**
 * One agent with its sessions, and the way to those that are not loaded. The ledger of its outboxes changes with every
 * request and is no row of the fleet: it is as old as `position`. Its failures and what is parked are read again as soon
 * as their number is another.
 *
 * @param showsLedger then that is read again when the agent or one of its sessions has changed
 */
export function useAgent(initial: AgentDetail, showsLedger: boolean) {
  const { fleet } = useFleetStores();
  const { id } = initial.agent;
  useInitialData((start) => start.takeAgentDetail(initial));
  const agent = useFleet(({ agents }) => agents.get(id)) ?? initial.agent;
  const list = useFleet(({ sessions }) => sessions.list(id));
  const sessions = list?.rows ?? initial.sessions;
  const { data, refetch } = useQuery({
    queryKey: ['fleet', 'ledger', 'agents', id],
    queryFn: async ({ signal }) => {
      const asked = fetchJson<AgentDetail>(`/agents/${encodeURIComponent(id)}`, signal);
      return applyUnlessReset(fleet, asked, (detail) => fleet.takeAgentDetail(detail));
    },
    initialData: initial,
    refetchInterval: ({ state }) => {
      const readAt = state.data?.position ?? initial.position;
      const isBehind = [agent, ...sessions].some((row) => comparePositions(row.updatedPosition, readAt) > 0);
      return showsLedger && isBehind && LEDGER_MS;
    },
  });
  const ledger = comparePositions(data.position, initial.position) < 0 ? initial : data;
  const [known, read] = [countsOf(agent), countsOf(ledger.agent)];
  useEffect(() => {
    if (known !== read) void refetch();
  }, [known, read, refetch]);
  const more = useMorePages({
    of: `agent ${id}`,
    next: list?.next,
    load: (after) =>
      fetchJson<SessionList>(`/sessions?${new URLSearchParams({ agent: id, after, limit: String(PAGE) })}`),
    take: (fleet, page, after) => fleet.takeAgentSessions(id, page, after),
  });
  const detail: LiveAgent = { ...ledger, agent, sessions };
  return { detail, hasMore: list?.next != null, more };
}

function countsOf({ insightCount, parkedCount }: AgentSummary): string {
  return `${insightCount} ${parkedCount}`;
}

/** One agent's row; null until it is known. */
export function useAgentSummary(agentId: string): AgentSummary | null {
  useFleetQuery({
    table: 'agents',
    kind: 'row',
    of: agentId,
    load: (signal) => fetchJson<AgentDetail>(`/agents/${encodeURIComponent(agentId)}`, signal),
    take: (fleet, detail) => fleet.takeAgent(detail),
  });
  return useFleet(({ agents }) => agents.get(agentId)) ?? null;
}
