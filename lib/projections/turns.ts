import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { Position } from '@/lib/protocol/position';
import type { FoldedType, TurnHeader, TurnPlaces } from '@/lib/protocol/turn-places';
import { endsChunks, namedChunk, withChunk, withoutChunk } from './chunks';
import type { EventEntry } from './event-entry';
import {
  caption,
  customName,
  customValue,
  idField,
  inputUserMessages,
  pickId,
  stringList,
  subagentTaskId,
  taskEventId,
  textField,
} from './event-fields';
import { interludeOf } from './interlude-metadata';
import { TurnPlacer } from './turn-placer';

/**
 * Where each event stands: in which turn, under which task, or nowhere.
 *
 * Ingest runs this once per event and writes the answer beside it, so that a transcript page is a range read; the
 * browser runs it over live frames. Both carry the same bounded state (`TurnPlaces`), which is why a live transcript
 * equals a reloaded one.
 *
 * Claims: a user message, and the end of a task, first stand where they happened. The turn that answers them names
 * them (`metadata.interlude`) and they move into it, whatever else was going on when they arrived. So a reply is never
 * "one late", and a between-run turn begins with its cause.
 */

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
   * At the end (and at each chunk) of what began in the turn that is open, or outside any: where it began. Null elsewhere: what ends too late is
   * no word of the turn it ends in.
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

/**
 * @param places what the last call returned, `NO_PLACES` before the first
 * @param entries events of one session in position order
 * @returns `places` is the same object when nothing in it changed
 */
export function placeEvents(
  places: TurnPlaces,
  entries: readonly EventEntry[],
): { places: TurnPlaces; placements: Placement[] } {
  const placer = new TurnPlacer(places);
  const placements = entries.map((entry) => placeEvent(placer, entry));
  return { places: placer.places(), placements };
}

function placeEvent(placer: TurnPlacer, told: EventEntry): Placement {
  const task = subagentTaskId(told.event);
  const entry = namedChunk(placer.chunks, told, task);
  const placement = placer.begin(entry);
  if (endsChunks(entry.event)) placer.tellChunks(withoutChunk(placer.chunks, task));
  const { ofSnapshot } = interludeOf(entry.event);
  if (ofSnapshot !== undefined) {
    placeOfSnapshot(placer, placement, ofSnapshot.turnId);
    return placement;
  }
  const place = Object.hasOwn(PLACE, entry.event.type) ? PLACE[entry.event.type] : undefined;
  if (place !== undefined) place(placer, placement, task);
  // Everything else is stored and shown nowhere; within a turn it still counts as the turn's own.
  else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  return placement;
}

/** What a snapshot says stands where it is known; what is new in it stands where it came, and is nobody's to answer. */
function placeOfSnapshot(placer: TurnPlacer, placement: Placement, turnId: string | null): void {
  const { event } = placement.entry;
  placement.entityId = idField(event, event.type.startsWith('TOOL_CALL_') ? 'toolCallId' : 'messageId');
  placement.turnId = turnId;
  if (turnId !== null) return;
  placement.role = textField(event, 'role');
  placer.show(placement);
}

type Place = (placer: TurnPlacer, placement: Placement, task: string | null) => void;

const starts =
  (kind: string, field: string): Place =>
  (placer, placement, task) => {
    const { event } = placement.entry;
    const id = idField(event, field);
    if (id === null) return;
    placement.entityId = id;
    placement.role = kind === 'text' ? (textField(event, 'role') ?? 'assistant') : null;
    if (placement.role === 'user' && task === null) placer.openUserMessage(placement, id);
    else placer.startEntity(placement, kind, id, task);
  };

const continues =
  (kind: string, field: string, streaming: FoldedType): Place =>
  (placer, placement, task) => {
    const id = idField(placement.entry.event, field);
    if (id === null) return;
    placement.entityId = id;
    placer.continueEntity(placement, kind, id, task, streaming);
  };

const ends =
  (kind: string, field: string, keep: boolean): Place =>
  (placer, placement) => {
    const id = idField(placement.entry.event, field);
    if (id === null) return;
    placement.entityId = id;
    placer.endEntity(placement, kind, id, keep);
  };

/** A chunk both opens and continues, and is never told to end: its rows stay as they are. */
const chunks =
  (kind: string, field: string): Place =>
  (placer, placement, task) => {
    const id = idField(placement.entry.event, field);
    if (id === null) return;
    placement.entityId = id;
    placement.role = kind === 'text' ? (textField(placement.entry.event, 'role') ?? 'assistant') : null;
    placer.openChunk(placement, kind, id, task);
    placer.tellChunks(withChunk(placer.chunks, { task, kind, id }));
  };

const PLACE: Record<string, Place | undefined> = {
  TEXT_MESSAGE_START: starts('text', 'messageId'),
  TEXT_MESSAGE_CONTENT: continues('text', 'messageId', 'TEXT_MESSAGE_CONTENT'),
  TEXT_MESSAGE_END: ends('text', 'messageId', false),
  TEXT_MESSAGE_CHUNK: chunks('text', 'messageId'),
  REASONING_MESSAGE_START: starts('reasoning', 'messageId'),
  REASONING_MESSAGE_CONTENT: continues('reasoning', 'messageId', 'REASONING_MESSAGE_CONTENT'),
  REASONING_MESSAGE_END: ends('reasoning', 'messageId', false),
  REASONING_MESSAGE_CHUNK: chunks('reasoning', 'messageId'),
  TOOL_CALL_START: starts('tool', 'toolCallId'),
  TOOL_CALL_ARGS: continues('tool', 'toolCallId', 'TOOL_CALL_ARGS'),
  // The result may come turns later: the call keeps its home until then.
  TOOL_CALL_END: ends('tool', 'toolCallId', true),
  TOOL_CALL_CHUNK: chunks('tool', 'toolCallId'),
  TOOL_CALL_RESULT: (placer, placement, task) => {
    const id = textField(placement.entry.event, 'toolCallId');
    if (id === null) return;
    placement.entityId = id;
    placer.openEntity(placement, 'tool', id, task);
    placer.endEntity(placement, 'tool', id, false);
  },
  RUN_STARTED: (placer, placement) => {
    const { event } = placement.entry;
    const metadata = interludeOf(event);
    const input = inputUserMessages(event);
    // A run without input that has a parent was started by the agent itself (Ambient's synthetic turns).
    const byItself = event.input === undefined && idField(event, 'parentRunId') !== null;
    const said = metadata.turn === 'user' || metadata.turn === 'between-run' ? metadata.turn : null;
    const kind = said ?? (byItself ? 'between-run' : 'user');
    placer.openTurn(placement, {
      id: idField(event, 'runId') ?? `run:${placement.entry.position}`,
      kind,
      parentTurnId: idField(event, 'parentRunId'),
      trigger: metadata.trigger ?? (kind === 'between-run' ? placer.likelyTrigger(byItself) : null),
      userMessageIds:
        metadata.userMessageIds !== undefined
          ? stringList(metadata.userMessageIds)
          : input.length > 0
            ? input.map((message) => message.id)
            : kind === 'user'
              ? 'whoever waits'
              : [],
    });
    const trigger = placement.turns.at(-1)?.trigger ?? undefined;
    placer.claim(placement, { ...metadata, trigger });
  },
  RUN_FINISHED: (placer, placement) => {
    const { event } = placement.entry;
    const outcome = event.outcome as { type?: unknown } | undefined;
    placer.closeTurn(placement, idField(event, 'runId'), {
      state: outcome?.type === 'cancelled' ? 'interrupted' : 'finished',
      error: null,
    });
  },
  RUN_ERROR: (placer, placement) => {
    const { event } = placement.entry;
    placer.closeTurn(placement, idField(event, 'runId'), {
      state: 'failed',
      error: { message: caption(textField(event, 'message')) ?? 'The run failed.', code: idField(event, 'code') },
    });
    if (placement.turnId === null) placer.show(placement);
  },
  CUSTOM: (placer, placement, task) => {
    const name = customName(placement.entry.event) ?? '';
    const place = Object.hasOwn(CUSTOM_PLACE, name) ? CUSTOM_PLACE[name] : undefined;
    if (place !== undefined) place(placer, placement, task);
    else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  },
};

const underItsTask: Place = (_placer, placement) => {
  const id = taskEventId(placement.entry.event);
  placement.entityId = id;
  placement.turnId = id === null ? null : `task:${id}`;
};

/** A command's end stands where it was asked for, and the answer to a request on the request. */
const ofCommand =
  (state: 'queued' | 'done' | 'failed'): Place =>
  (placer, placement) => {
    const value = customValue(placement.entry.event);
    const id = pickId(value, 'command_id', 'commandId');
    if (id === null) return;
    const requestId = pickId(value, 'request_id', 'requestId');
    if (requestId !== null && placer.join(placement, 'request', requestId)) {
      placement.entityId = requestId;
      return;
    }
    placement.entityId = id;
    if (state === 'queued') placer.openEntity(placement, 'command', id, null);
    else if (placer.join(placement, 'command', id)) placer.endEntity(placement, 'command', id, false);
    // It had ended before, or the agent has gone on from the request: then only what went wrong is worth a line.
    else if (state === 'failed' || requestId === null) placer.show(placement);
  };

const shown: Place = (placer, placement) => placer.show(placement);

const CUSTOM_PLACE: Record<string, Place | undefined> = {
  [CUSTOM.taskStarted]: (placer, placement) => {
    placement.entityId = taskEventId(placement.entry.event);
    if (placement.entityId !== null) placer.show(placement);
  },
  [CUSTOM.taskProgress]: underItsTask,
  [CUSTOM.taskUpdated]: underItsTask,
  [CUSTOM.taskCompleted]: (placer, placement) => {
    const value = customValue(placement.entry.event);
    const id = taskEventId(placement.entry.event);
    if (id === null) return;
    placement.entityId = id;
    const isToldElsewhere = interludeOf(placement.entry.event).reportedBy !== undefined;
    placer.endTask(placement, id, pickId(value, 'run_id', 'runId'), isToldElsewhere ? { isToldElsewhere } : {});
  },
  [CUSTOM.taskElsewhere]: (placer, placement) => {
    const value = customValue(placement.entry.event);
    const id = pickId(value, 'task_id');
    const ofSessionId = pickId(value, 'session_id');
    if (id === null || ofSessionId === null) return;
    placement.entityId = id;
    // What this session had said before has its line, and woke what it woke.
    if (value.again === true) placement.turnId = `task:${id}`;
    else placer.endTask(placement, id, pickId(value, 'run_id'), { ofSessionId });
  },
  [CUSTOM.taskTold]: (_placer, placement) => {
    const id = pickId(customValue(placement.entry.event), 'task_id');
    placement.entityId = id;
    placement.turnId = id === null ? null : `task:${id}`;
  },
  [CUSTOM.requestOpened]: (placer, placement, task) => {
    const id = pickId(customValue(placement.entry.event), 'request_id', 'requestId');
    if (id === null) return;
    placement.entityId = id;
    placer.openEntity(placement, 'request', id, task);
  },
  [CUSTOM.requestResolved]: (placer, placement) => {
    const id = pickId(customValue(placement.entry.event), 'request_id', 'requestId');
    if (id === null) return;
    placement.entityId = id;
    placer.endEntity(placement, 'request', id, false);
  },
  [CUSTOM.sessionEnded]: (placer, placement) => {
    placer.closeTurn(placement, null, { state: 'interrupted', error: null });
    placement.turnId = null;
    placer.show(placement);
  },
  [CUSTOM.messageDelivery]: (placer, placement) => {
    const value = customValue(placement.entry.event);
    const id = pickId(value, 'message_id', 'messageId');
    if (id === null) return;
    placement.entityId = id;
    placer.deliver(placement, id, value.delivery === 'delivered');
  },
  [CUSTOM.commandQueued]: ofCommand('queued'),
  [CUSTOM.commandDone]: ofCommand('done'),
  [CUSTOM.commandFailed]: ofCommand('failed'),
  [CUSTOM.obligationWaived]: shown,
  [CUSTOM.runnerAway]: shown,
  [CUSTOM.runnerBack]: shown,
  [CUSTOM.lost]: shown,
  [CUSTOM.quarantined]: shown,
  [CUSTOM.parkedAssigned]: shown,
  [CUSTOM.parkedDiscarded]: shown,
  [CUSTOM.notice]: shown,
};
