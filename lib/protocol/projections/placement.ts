import type { AgUiEvent } from '../ag-ui';
import type { Position } from '../position';
import type { FoldedType, TurnHeader, TurnPlaces } from '../turn-places';

/** The place of an event, and its effect on the places of others. */
export interface Placement {
  /** The event. A chunk without an id has the id of the entity it continues. */
  entry: EventEntry;
  /** The turn that shows the event; `task:<id>` under a task; null if not shown. */
  turnId: string | null;
  /** Id of the event's message, tool call, request or task. */
  entityId: string | null;
  /** Role of the event's text message. */
  role: string | null;
  /**
   * Start of the entity, on its end and on each of its chunks, if it started in the open turn or outside any turn. Null
   * otherwise: text that ends late does not belong to the turn in which it ends.
   */
  begunAt: Position | null;
  /** Turns opened or changed by the event, in order. */
  turns: TurnHeader[];
  /** Entities that move to another turn: the event at `position`, or all of them if null. */
  moves: { entityId: string; fromTurnId: string; toTurnId: string; position: Position | null }[];
  /** `none` turns that a move emptied. */
  removedTurnIds: string[];
  /** The event belongs to the repetition of a finished run. */
  isRepeated?: true;
  /** All turns that started up to this position were removed. */
  removedUpTo?: Position;
  /** Complete entities, whose deltas become one event with the whole text in the place of the last delta. */
  folds: { entityId: string; fromPosition: Position; type: FoldedType }[];
}

export const NO_PLACES: TurnPlaces = { openTurn: null, outside: null, homes: {}, userMessages: [], endedTasks: [] };

/** The header of a `none` turn, which holds events outside any turn and is never open. */
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
