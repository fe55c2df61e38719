import { comparePositions } from '@interlude/protocol/position';
import { foldShownItems } from '@interlude/protocol/projections/items';
import {
  type ObligationChange,
  type ObligationFold,
  ObligationLedger,
} from '@interlude/protocol/projections/obligations';
import type { EventEntry, Placement } from '@interlude/protocol/projections/placement';
import { type SessionFold, SessionLedger } from '@interlude/protocol/projections/session-summary';
import { TaskLedger } from '@interlude/protocol/projections/tasks';
import { settleTurn } from '@interlude/protocol/projections/transcript';
import type { Obligation, Task, Turn } from '@interlude/protocol/read-models';
import type { TurnHeader } from '@interlude/protocol/turn-places';

/** The projections in one go, which a server runs placement by placement. */

type Owner = Pick<Task, 'sessionId' | 'agentId'>;

/** @returns the new and the changed tasks, each once, as they stand after the placements */
export function foldTasks(tasks: readonly Task[], placements: readonly Placement[], owner: Owner): Task[] {
  const ledger = new TaskLedger(owner);
  for (const task of [...tasks].sort((a, b) => comparePositions(a.position, b.position))) ledger.load(task);
  for (const placement of placements) for (const _ of ledger.apply(placement));
  return [...ledger.changed()];
}

/** @param known the session's stored obligations that the placements may touch, settled ones too */
export function foldObligations(
  fold: ObligationFold,
  known: readonly Obligation[],
  placements: readonly Placement[],
  owner: Owner,
): { fold: ObligationFold; changes: ObligationChange[] } {
  const ledger = new ObligationLedger(fold, known, owner);
  for (const placement of placements) ledger.apply(placement);
  return { fold: ledger.fold, changes: ledger.changes() };
}

/** @param heardAt when the agent's own word of the session came; null where it is not the agent that speaks */
export function foldSession(
  fold: SessionFold,
  placements: readonly Placement[],
  tasks: readonly { before: Task | null; after: Task }[],
  obligations: readonly ObligationChange[] = [],
  heardAt: number | null = null,
): SessionFold {
  const ledger = new SessionLedger(fold, heardAt);
  for (const placement of placements) ledger.apply(placement);
  for (const { before, after } of tasks) ledger.countTask(before, after);
  return ledger.result(obligations);
}

/** @param entries every event whose place is this turn, in position order */
export function turnFromEvents(header: TurnHeader, entries: readonly EventEntry[]): Turn {
  return settleTurn({ ...header, ...foldShownItems({ items: [] }, entries, header.kind === 'none') });
}
