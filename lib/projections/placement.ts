import type { Position } from '@/lib/protocol/position';
import type { FoldedType, TurnHeader } from '@/lib/protocol/turn-places';
import type { EventEntry } from './event-entry';

/** Where an event stands, and what it changes of where others do. */
export interface Placement {
  /** As it was told; a chunk has the name of what it goes on with. */
  entry: EventEntry;
  /** The turn that shows the event; `task:<id>` under a task; null where nothing shows it. */
  turnId: string | null;
  /** The message, tool call, request or task the event is about. */
  entityId: string | null;
  /** The role of the text message the event is about. */
  role: string | null;
  /**
   * At the end, and at each chunk, of what began in the open turn or outside any: where it began. Null elsewhere: what
   * ends too late is no word of the turn it ends in.
   */
  begunAt: Position | null;
  /** Turns that this event opened or changed, in order. */
  turns: TurnHeader[];
  /** Entities that stand in another turn from now on. `position` names the one event that moves; null: all of them. */
  moves: { entityId: string; fromTurnId: string; toTurnId: string; position: Position | null }[];
  /** `none` turns that a move left empty. */
  removedTurnIds: string[];
  /** Entities whose deltas are complete: they become one event with the whole text, where the last delta stood. */
  folds: { entityId: string; fromPosition: Position; type: FoldedType }[];
}
