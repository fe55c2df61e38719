'use client';

import type { AgentList } from '@interlude/protocol/read-models';
import { useInitialData } from '@/components/live/use-fleet';
import { BoardTable } from './board-table';
import { useAgents } from './use-agents';
import { useWholeBoard } from './use-whole-board';

/** Every agent this server has heard of: what it does, where it runs, what it owes and what is missing of it. */
export function AgentBoard({ initial }: { initial: AgentList }) {
  useInitialData((fleet) => fleet.takeAgents(initial));
  const { list, more } = useAgents();
  useWholeBoard(list, more);
  if (list === undefined || list.rows.length === 0) {
    return (
      <p className="max-w-prose text-ink-2">
        No agent has sent anything yet. One appears here by itself with its first event; the start page says how to
        connect it.
      </p>
    );
  }
  return <BoardTable list={list} more={more} />;
}
