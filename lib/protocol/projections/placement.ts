import type { AgUiEvent, InterludeMetadata, TurnTrigger } from '../ag-ui';
import { stringList } from '../event-fields';
import { addTo } from '../fields';
import type { Position } from '../position';
import type { FoldedType, Home, TurnHeader, TurnPlaces, Unanswered } from '../turn-places';

/** The place of an event, and its effect on the places of other events. */
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
   * Start of the entity, set on its end and on each of its chunks. Null if it started in an earlier turn: text that ends
   * late does not belong to the turn in which it ends.
   */
  startPosition: Position | null;
  /** Turns opened or changed by the event, in order. */
  turns: TurnHeader[];
  /** Entities that move to another turn: the event at `position`, or all of them if null. */
  moves: { entityId: string; fromTurnId: string; toTurnId: string; position: Position | null }[];
  /** `none` turns that a move emptied. */
  removedTurnIds: string[];
  /** True if the event belongs to the repetition of a finished run. */
  isRepeated?: true;
  /** All turns that started up to this position were removed. */
  removedUpTo?: Position;
  /** Complete entities, whose deltas become one event with the whole text in the place of the last delta. */
  folds: { entityId: string; fromPosition: Position; type: FoldedType }[];
}

export const NO_PLACES: TurnPlaces = { openTurn: null, outside: null, homes: {}, userMessages: [], endedTasks: [] };

/** The header of a `none` turn, which holds events outside any turn and is never open. */
export function noneTurn(id: string, position: Position, startedAt: number): TurnHeader {
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

/** A placement that is not assigned to a turn yet. */
export function newPlacement(entry: EventEntry, isRepeated: boolean): Placement {
  const unplaced = { turnId: null, entityId: null, role: null, startPosition: null };
  const lists = { turns: [], moves: [], removedTurnIds: [], folds: [] };
  return { entry, ...unplaced, ...lists, ...(isRepeated ? { isRepeated } : {}) };
}

/**
 * Infers the trigger of a run that names none from the unanswered task ends. Names each task run once, because a turn
 * claims only its last end and retention may remove the earlier ones.
 */
export function inferredTrigger(endedTasks: readonly Unanswered[]): TurnTrigger {
  const keyOf = ({ id, runId, ofSessionId }: Unanswered) => JSON.stringify([id, runId, ofSessionId]);
  const found = endedTasks.filter((task) => task.isToldElsewhere !== true);
  const last = new Map(found.map((task) => [keyOf(task), task]));
  const ended = found.filter((task) => last.get(keyOf(task)) === task);
  if (ended.length === 0) return { kind: 'unknown', taskIds: [] };
  const trigger = { taskIds: ended.map((task) => task.id), taskRunIds: ended.map((task) => task.runId) };
  if (ended.every((task) => task.ofSessionId === undefined)) return { kind: 'task', ...trigger };
  return { kind: 'task', ...trigger, ofSessionIds: ended.map((task) => task.ofSessionId ?? null) };
}

/** The task ends that a turn names (`claimed`), and the last one of each task, which moves into the turn (`moved`). */
export function claimedTaskEnds(
  endedTasks: readonly Unanswered[],
  { trigger, foldedTaskIds }: InterludeMetadata,
): { claimed: ReadonlySet<Unanswered>; moved: readonly Unanswered[] } {
  const claimed = new Set<Unanswered>();
  const moved: Unanswered[] = [];
  if (endedTasks.length === 0) return { claimed, moved };
  const ended = new Map<string, Unanswered[]>();
  for (const task of endedTasks) addTo(ended, task.id, task);
  for (const [index, taskId] of [...stringList(trigger?.taskIds), ...stringList(foldedTaskIds)].entries()) {
    const runId = trigger?.taskRunIds?.[index] ?? null;
    const found = (ended.get(taskId) ?? []).filter(
      (task) => !claimed.has(task) && (runId === null || task.runId === null || task.runId === runId),
    );
    // A task presumed lost and reported later has two ends; the turn answers the later one. A report by the task's own
    // session takes precedence.
    const last = found.findLast((task) => task.isToldElsewhere !== true) ?? found.at(-1);
    if (last !== undefined) moved.push(last);
    for (const task of found) claimed.add(task);
  }
  return { claimed, moved };
}

/** Marks the deltas so far as folded. */
export function folded(home: Home): Home {
  return isFoldable(home) ? { ...home, streaming: null } : home;
}

export function isFoldable({ streaming }: Home): boolean {
  return streaming !== 'never' && streaming !== 'chunks';
}
