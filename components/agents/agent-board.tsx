'use client';

import type { AgentList } from '@interlude/protocol/read-models';
import { useInitialData } from '@/components/live/use-fleet';
import { BoardTable } from './board-table';
import { useAgents } from './use-agents';
import { useWholeBoard } from './use-whole-board';

/** Every agent this server has heard of: what it does, where it runs, what it owes and what is missing of it. */
export function AgentBoard({ initial }: { initial: AgentList }) {
  useInitialData((fleet) => fleet.takeAgents(initial));
  const { list, state } = useAgents();
  useWholeBoard(list, state);
  if (list !== undefined && list.rows.length > 0) return <BoardTable list={list} state={state} />;
  return (
    <p className="max-w-prose text-ink-2">
      No agents yet. An agent appears here with its first event. The start page shows how to connect one.
    </p>
  );
}
