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

/** An agent with live rows. All other fields are as last read. */
export type LiveAgent = Omit<AgentDetail, 'sessions'> & { sessions: readonly SessionSummary[] };

/** Minimum time between reads of the ledger. */
const LEDGER_MS = 5_000;

/** The loaded agents, and the request for more. */
export function useAgents() {
  const list = useFleet(({ agents }) => agents.list(ALL));
  const state = useLiveList<AgentList>({
    table: 'agents',
    path: '/agents',
    next: list?.next,
    limit: PAGE,
    put: (fleet, page, after) => fleet.putAgents(page, after),
  });
  return { list, state };
}

/**
 * An agent with its sessions. The delivery ledger changes with every request and is not streamed: it is as old as
 * `position`. Failures and unassigned records are read again when their count changes.
 *
 * @param showsLedger reads the ledger again when the agent or one of its sessions has changed
 */
export function useAgent(initial: AgentDetail, showsLedger: boolean) {
  const { fleet } = useFleetStores();
  const { id } = initial.agent;
  useInitialData((start) => start.putAgentDetail(initial));
  const agent = useFleet(({ agents }) => agents.get(id)) ?? initial.agent;
  const list = useFleet(({ sessions }) => sessions.list(id));
  const sessions = list?.rows ?? initial.sessions;
  const { data, refetch } = useQuery({
    queryKey: ['fleet', 'ledger', 'agents', id],
    queryFn: async ({ signal }) => {
      const reading = fetchJson<AgentDetail>(`/agents/${encodeURIComponent(id)}`, signal);
      return applyUnlessReset(fleet, reading, (detail) => fleet.putAgentDetail(detail));
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
    await applyUnlessReset(fleet, page, (page) => fleet.putAgentSessions(id, page, after));
  });
  const detail: LiveAgent = { ...ledger, agent, sessions };
  return { detail, moreSessions };
}

function countsOf({ insightCount, parkedCount }: AgentSummary): string {
  return `${insightCount} ${parkedCount}`;
}

/** An agent's row; null until it is loaded. */
export function useAgentSummary(agentId: string): AgentSummary | null {
  useFleetQuery({
    table: 'agents',
    kind: 'row',
    of: agentId,
    load: (signal) => fetchJson<AgentDetail>(`/agents/${encodeURIComponent(agentId)}`, signal),
    put: (fleet, detail) => fleet.putAgent(detail),
  });
  return useFleet(({ agents }) => agents.get(agentId)) ?? null;
}
