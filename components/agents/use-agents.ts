'use client';

import { skipToken, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import type { RowFrame } from '@/components/live/row-frame';
import { useLiveQuery } from '@/components/live/use-live-query';
import { useMorePages } from '@/components/live/use-more-pages';
import type { AgentDetail, AgentList, AgentSummary, SessionSummary } from '@/lib/protocol/read-models';

const PAGE = 100;

const pageAfter = (after: string, signal?: AbortSignal) =>
  fetchJson<AgentList>(`/agents?${new URLSearchParams({ after, limit: String(PAGE) })}`, signal);

/** The agents that were loaded, kept current, and the way to the others. */
export function useAgents(initial?: AgentList) {
  const query = useLiveQuery<AgentList>({
    key: ['agents'],
    topic: 'fleet',
    initial,
    load: (signal) => pageAfter('0', signal),
    fold: (list, frames) => {
      const agents = replaceRows(list.agents, agentRows(frames));
      return { ...list, position: lastPosition(frames), agents, count: Math.max(list.count, agents.length) };
    },
  });
  const more = useMorePages<AgentList>(['agents'], pageAfter, (list, page) => ({
    ...list,
    agents: replaceRows(page.agents, list.agents),
    next: page.next,
    count: page.count,
  }));
  return { ...query, more };
}

/**
 * One agent, its sessions kept current. The ledger of its outboxes changes with every request and is no row of the
 * fleet: it is as old as `position`, and is read again when the agent or one of its sessions has changed. Its failures
 * and what is parked are read again as soon as their number is another.
 */
export function useAgent(agentId: string, initial?: AgentDetail) {
  const query = useLiveQuery<AgentDetail>({
    key: ['agent', agentId],
    topic: 'fleet',
    initial,
    load: (signal) => fetchJson(`/agents/${encodeURIComponent(agentId)}`, signal),
    fold: (detail, frames) => {
      const sessions = frames.flatMap((frame) =>
        frame.event === 'session' && frame.data.agentId === agentId ? [frame.data] : [],
      );
      return {
        ...detail,
        position: lastPosition(frames),
        agent: agentRows(frames).findLast((row) => row.id === agentId) ?? detail.agent,
        sessions: replaceRows(detail.sessions, sessions),
      };
    },
  });
  const { refetch } = query;
  const agent = query.data?.agent;
  const count = agent && `${agent.insightCount} ${agent.parkedCount}`;
  const readAt = useRef(count);
  useEffect(() => {
    if (count !== undefined && readAt.current !== undefined && count !== readAt.current) void refetch();
    readAt.current = count;
  }, [count, refetch]);
  return query;
}

interface OlderSessions {
  sessions: SessionSummary[];
  next: string | null;
}

/**
 * An agent's sessions: the newest, which come with it and are read again with it, and those that were loaded beyond.
 */
export function useAgentSessions({ agent, sessions, nextSessions }: AgentDetail) {
  const key = ['agent-sessions', agent.id];
  const older = useQuery<OlderSessions>({
    queryKey: key,
    queryFn: skipToken,
    initialData: { sessions: [], next: nextSessions },
  }).data;
  const load = (after: string) => {
    const query = new URLSearchParams({ agent: agent.id, after, limit: String(PAGE) });
    return fetchJson<OlderSessions>(`/sessions?${query}`);
  };
  const more = useMorePages<OlderSessions>(key, load, (before, page) => ({
    sessions: [...before.sessions, ...page.sessions],
    next: page.next,
  }));
  const all = useMemo(() => replaceRows(older?.sessions ?? [], sessions), [older, sessions]);
  return { sessions: all, hasMore: older?.next != null, more };
}

export type AgentRow = Pick<AgentDetail, 'position' | 'agent'>;

/** One agent's row, kept current: whether it is there, what it is. */
export function useAgentSummary(agentId: string, initial?: AgentRow) {
  return useLiveQuery<AgentRow>({
    key: ['agent-row', agentId],
    topic: 'fleet',
    initial,
    load: async (signal) => {
      const detail = await fetchJson<AgentDetail>(`/agents/${encodeURIComponent(agentId)}`, signal);
      return { position: detail.position, agent: detail.agent };
    },
    fold: (row, frames) => ({
      position: lastPosition(frames),
      agent: agentRows(frames).findLast(({ id }) => id === agentId) ?? row.agent,
    }),
  });
}

function agentRows(frames: RowFrame[]): AgentSummary[] {
  return frames.flatMap((frame) => (frame.event === 'agent' ? [frame.data] : []));
}

function replaceRows<Row extends { id: string }>(rows: Row[], changes: Row[]): Row[] {
  if (changes.length === 0) return rows;
  const changed = new Map(changes.map((row) => [row.id, row]));
  const next = rows.map((row) => {
    const change = changed.get(row.id);
    changed.delete(row.id);
    return change ?? row;
  });
  return [...next, ...changed.values()];
}

function lastPosition(frames: RowFrame[]): string {
  return (frames.at(-1) as RowFrame).id;
}
