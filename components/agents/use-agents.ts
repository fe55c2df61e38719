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
import { applyUnlessReset, useFleet, useFleetQuery, useFleetStores, useInitialData } from '@/components/live/use-fleet';
import { PAGE, useLiveList, useMorePage } from '@/components/live/use-list';

/** Its rows as they are now, the rest as it was read. */
export type LiveAgent = Omit<AgentDetail, 'sessions'> & { sessions: readonly SessionSummary[] };

/** The ledger is read again at most this often while its agent is at work. */
const LEDGER_MS = 5_000;

/** The loaded agents, and the request for further ones. */
export function useAgents() {
  const list = useFleet(({ agents }) => agents.list(ALL));
  const state = useLiveList<AgentList>({
    table: 'agents',
    path: '/agents',
    next: list?.next,
    limit: PAGE,
    take: (fleet, page, after) => fleet.takeAgents(page, after),
  });
  return { list, state };
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
  const moreSessions = useMorePage(['agent', id], list?.next ?? null, async (after) => {
    const params = new URLSearchParams({ agent: id, after, limit: String(PAGE) });
    const page = fetchJson<SessionList>(`/sessions?${params}`);
    await applyUnlessReset(fleet, page, (page) => fleet.takeAgentSessions(id, page, after));
  });
  const detail: LiveAgent = { ...ledger, agent, sessions };
  return { detail, moreSessions };
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
