import type { AgUiEvent } from '../ag-ui';
import type { Position } from '../position';
import type { FoldedType, TurnHeader, TurnPlaces } from '../turn-places';

/** Where an event belongs, and what it changes about where others do. */
export interface Placement {
  /** As it came; a chunk without an id has been given the id of what it continues. */
  entry: EventEntry;
  /** The turn that shows the event; `task:<id>` under a task; null if nothing shows it. */
  turnId: string | null;
  /** The message, tool call, request or task the event is about. */
  entityId: string | null;
  /** The role of the text message the event is about. */
  role: string | null;
  /**
   * Set on the end, and on each chunk, of something that began in the open turn or outside any turn: where it began.
   * Null otherwise: something that ends too late was not said by the turn in which it ends.
   */
  begunAt: Position | null;
  /** Turns that this event opened or changed, in order. */
  turns: TurnHeader[];
  /** Entities that move to another turn. `position` is the one event that moves; null: all of them. */
  moves: { entityId: string; fromTurnId: string; toTurnId: string; position: Position | null }[];
  /** `none` turns that a move left empty. */
  removedTurnIds: string[];
  /** It belongs to a run that has finished and is repeated. */
  isRetold?: true;
  /** Every turn that began up to here was removed. */
  removedUpTo?: Position;
  /** Entities whose deltas are complete: they become one event with the whole text, in the place of the last delta. */
  folds: { entityId: string; fromPosition: Position; type: FoldedType }[];
}

export const NO_PLACES: TurnPlaces = { openTurn: null, outside: null, homes: {}, userMessages: [], endedTasks: [] };

/** The header of a `none` turn, for events outside any turn. It is never open. */
export function outsideTurn(id: string, position: Position, startedAt: number): TurnHeader {
  return {
    id,
    kind: 'none',
    state: 'finished',
    position,
    trigger: null,
    userMessageIds: [],
    parentTurnId: null,
    startedAt,
    endedAt: startedAt,
    error: null,
  };
}

/** An event with its position in the log: what every projection folds. */
export interface EventEntry {
  position: Position;
  /** The runner's clock, epoch milliseconds. */
  occurredAt: number;
  /** The server's clock, epoch milliseconds. */
  receivedAt: number;
  event: AgUiEvent;
}
