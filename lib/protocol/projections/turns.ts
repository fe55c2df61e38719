import type { AgUiEvent } from '../ag-ui';
import {
  CUSTOM,
  caption,
  customName,
  customValue,
  idField,
  inputUserMessages,
  pickId,
  pickText,
  type StreamedKind,
  streamedKind,
  stringList,
  subagentTaskId,
  taskEndOf,
  taskEventId,
} from '../event-fields';
import { fieldsOf, listOf, textOf } from '../fields';
import { readInterlude, withInterlude } from '../interlude-metadata';
import { truncateText } from '../text';
import type { Chunked, FoldedType, TurnPlaces } from '../turn-places';
import type { EventEntry, Placement } from './placement';
import { TurnPlacer } from './turn-placer';

/**
 * Assigns each event to a turn, to a task, or to nothing.
 *
 * Ingest places each event once and stores the result with it, so a transcript page is a range read. The browser places
 * live frames. Both use the same bounded state (`TurnPlaces`), so a live transcript equals a reloaded one.
 *
 * Claims: a user message or task end is first placed where it happened. The turn that answers it names it in
 * `metadata.interlude`, and the item moves into that turn. So no reply appears one turn late, and a between-run turn
 * starts with its cause.
 *
 * Ordering: events of one session, in position order.
 * Failure: never throws. A malformed event is stored and not shown.
 */

/**
 * @param places the state from the last call, `NO_PLACES` at first
 * @param entries events of one session in position order
 * @returns the same `places` object if unchanged
 */
export function placeEvents(
  places: TurnPlaces,
  entries: readonly EventEntry[],
): { places: TurnPlaces; placements: Placement[] } {
  const placer = new TurnPlacer(places);
  const placements = entries.map((entry) => placeEvent(placer, entry));
  return { places: placer.places(), placements };
}

function placeEvent(placer: TurnPlacer, received: EventEntry): Placement {
  const task = subagentTaskId(received.event);
  const entry = resolveChunk(placer.chunks, received, task);
  const placement = placer.placementOf(entry);
  if (interruptsChunks(entry.event)) placer.setChunks(withoutChunk(placer.chunks, task));
  const { ofSnapshot } = readInterlude(entry.event);
  if (ofSnapshot !== undefined) {
    placeSnapshotPart(placer, placement, ofSnapshot.turnId);
    return placement;
  }
  // A call in a repeated run is the known call, not a new one with the same id.
  if (placement.isRepeated && entry.event.type === 'TOOL_CALL_START')
    placement.entry = { ...entry, event: withInterlude(entry.event, { again: true }) };
  const place = Object.hasOwn(PLACE_BY_TYPE, entry.event.type) ? PLACE_BY_TYPE[entry.event.type] : undefined;
  if (place !== undefined) place(placer, placement, task);
  // Other events are stored but not shown. Within a turn, they belong to the turn.
  else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  return placement;
}

/** Places a part of a snapshot: a known part in its turn, a new one in the current place, unclaimed. */
function placeSnapshotPart(placer: TurnPlacer, placement: Placement, turnId: string | null): void {
  const { event } = placement.entry;
  const kind = streamedKind(event.type);
  if (kind !== null) placement.entityId = idOf(kind)(event);
  placement.turnId = turnId;
  if (kind !== null && placement.entityId !== null && event.type.endsWith('_CHUNK')) {
    placer.markChunked(kind, placement.entityId);
  }
  if (turnId !== null) return;
  placement.role = textOf(event.role);
  placer.show(placement);
}

type Place = (placer: TurnPlacer, placement: Placement, task: string | null) => void;

/** Places an event by the id of its entity. An event without an id is not shown. */
const byEntity =
  (
    idOf: (event: AgUiEvent) => string | null,
    place: (placer: TurnPlacer, placement: Placement, id: string, task: string | null) => void,
  ): Place =>
  (placer, placement, task) => {
    const id = idOf(placement.entry.event);
    if (id === null) return;
    placement.entityId = id;
    place(placer, placement, id, task);
  };

const messageIdOf = (event: AgUiEvent) => idField(event, 'messageId');
const callIdOf = (event: AgUiEvent) => idField(event, 'toolCallId');
const requestIdOf = (event: AgUiEvent) => pickId(customValue(event), 'request_id', 'requestId');
const sentMessageIdOf = (event: AgUiEvent) => pickId(customValue(event), 'message_id', 'messageId');
const commandIdOf = (event: AgUiEvent) => pickId(customValue(event), 'command_id', 'commandId');
const foreignTaskIdOf = (event: AgUiEvent) => pickId(customValue(event), 'task_id');

const idOf = (kind: StreamedKind) => (kind === 'tool' ? callIdOf : messageIdOf);

const roleOf = (kind: StreamedKind, event: AgUiEvent) => (kind === 'text' ? (textOf(event.role) ?? 'assistant') : null);

const starts = (kind: StreamedKind) =>
  byEntity(idOf(kind), (placer, placement, id, task) => {
    placement.role = roleOf(kind, placement.entry.event);
    if (placement.role === 'user' && task === null) placer.openUserMessage(placement, id);
    else placer.startEntity(placement, kind, id, task);
  });

const continues = (kind: StreamedKind, streaming: FoldedType) =>
  byEntity(idOf(kind), (placer, placement, id, task) => placer.continueEntity(placement, kind, id, task, streaming));

const ends = (kind: StreamedKind, keep: boolean) =>
  byEntity(idOf(kind), (placer, placement, id) => placer.endEntity(placement, kind, id, keep));

/** A chunk opens or continues an entity. No event marks its end, so its rows are never folded into one. */
const chunks = (kind: StreamedKind) =>
  byEntity(idOf(kind), (placer, placement, id, task) => {
    placement.role = roleOf(kind, placement.entry.event);
    placer.openChunk(placement, kind, id, task);
    placer.setChunks(withChunk(placer.chunks, { task, kind, id }));
  });

/** Shows a plan once in each turn that reports it, in its latest version. Other activities are stored and not shown. */
const showPlan: Place = (placer, placement, task) => {
  const { event } = placement.entry;
  if (task !== null) placement.turnId = `task:${task}`;
  else if (isPlan(event)) placer.show(placement);
  else placement.turnId = placer.openTurnId;
};

function isPlan(event: AgUiEvent): boolean {
  const { activityType, content } = event;
  return activityType === 'plan' && messageIdOf(event) !== null && Array.isArray(fieldsOf(content).entries);
}

const PLACE_BY_TYPE: Record<string, Place | undefined> = {
  TEXT_MESSAGE_START: starts('text'),
  TEXT_MESSAGE_CONTENT: continues('text', 'TEXT_MESSAGE_CONTENT'),
  TEXT_MESSAGE_END: ends('text', false),
  TEXT_MESSAGE_CHUNK: chunks('text'),
  REASONING_MESSAGE_START: starts('reasoning'),
  REASONING_MESSAGE_CONTENT: continues('reasoning', 'REASONING_MESSAGE_CONTENT'),
  REASONING_MESSAGE_END: ends('reasoning', false),
  REASONING_MESSAGE_CHUNK: chunks('reasoning'),
  TOOL_CALL_START: starts('tool'),
  TOOL_CALL_ARGS: continues('tool', 'TOOL_CALL_ARGS'),
  // The call keeps its place until its result, which may arrive turns later.
  TOOL_CALL_END: ends('tool', true),
  TOOL_CALL_CHUNK: chunks('tool'),
  TOOL_CALL_RESULT: byEntity(callIdOf, (placer, placement, id, task) => {
    placer.openEntity(placement, 'tool', id, task);
    placer.endEntity(placement, 'tool', id, false);
  }),
  ACTIVITY_SNAPSHOT: showPlan,
  RUN_STARTED: (placer, placement) => {
    const { event } = placement.entry;
    const metadata = readInterlude(event);
    const input = inputUserMessages(event);
    // The agent itself starts a run with a parent and without input (Ambient's synthetic turns).
    const isSelfStarted = event.input === undefined && idField(event, 'parentRunId') !== null;
    const declaredKind = metadata.turn === 'user' || metadata.turn === 'between-run' ? metadata.turn : null;
    const kind = declaredKind ?? (isSelfStarted ? 'between-run' : 'user');
    const runId = idField(event, 'runId');
    const namedIds = metadata.userMessageIds ?? (input.length > 0 ? input.map(({ id }) => id) : null);
    const messageIds = namedIds ?? (kind === 'user' ? null : []);
    const taskIds = stringList(metadata.trigger?.taskIds);
    const resumes = listOf(fieldsOf(event.input).resume).length > 0;
    if (runId !== null && !resumes && placer.placeRepeatedRun(placement, runId, { messageIds, taskIds })) return;
    placer.openTurn(placement, {
      id: runId ?? `run:${placement.entry.position}`,
      kind,
      parentTurnId: idField(event, 'parentRunId'),
      trigger: metadata.trigger ?? (kind === 'between-run' ? placer.inferTrigger(isSelfStarted) : null),
      userMessageIds: messageIds,
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
      error: { message: caption(textOf(event.message)) ?? 'The run failed.', code: idField(event, 'code') },
    });
    if (placement.turnId === null) placer.show(placement);
  },
  CUSTOM: (placer, placement, task) => {
    const name = customName(placement.entry.event) ?? '';
    const place = Object.hasOwn(PLACE_BY_NAME, name) ? PLACE_BY_NAME[name] : undefined;
    if (place !== undefined) place(placer, placement, task);
    else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  },
};

const placeUnderTask = (_placer: TurnPlacer, placement: Placement, id: string) => {
  placement.turnId = `task:${id}`;
};

/** Places a command's end with the command, and the answer to a request with the request. */
const placeCommand = (state: 'queued' | 'done' | 'failed') =>
  byEntity(commandIdOf, (placer, placement, id) => {
    const requestId = requestIdOf(placement.entry.event);
    if (requestId !== null && placer.join(placement, 'request', requestId)) placement.entityId = requestId;
    else if (state === 'queued') placer.openEntity(placement, 'command', id, null);
    else if (placer.join(placement, 'command', id)) placer.endEntity(placement, 'command', id, false);
    // The command has ended or the request is settled, so only a failure needs a line.
    else if (state === 'failed' || requestId === null) placer.show(placement);
  });

const showEvent = (placer: TurnPlacer, placement: Placement) => placer.show(placement);
/** Hides a runner's disconnect and reconnect if nothing was in progress. */
const unlessIdle = (placer: TurnPlacer, placement: Placement) => {
  if (customValue(placement.entry.event).at_rest === true) placement.turnId = null;
  else placer.show(placement);
};

const PLACE_BY_NAME: Record<string, Place | undefined> = {
  [CUSTOM.taskStarted]: byEntity(taskEventId, (placer, placement, id) =>
    placer.startTask(placement, id, pickId(customValue(placement.entry.event), 'run_id', 'runId')),
  ),
  [CUSTOM.taskProgress]: byEntity(taskEventId, placeUnderTask),
  [CUSTOM.taskUpdated]: byEntity(taskEventId, placeUnderTask),
  [CUSTOM.taskCompleted]: byEntity(taskEventId, (placer, placement, id) => {
    const { event } = placement.entry;
    const isToldElsewhere = readInterlude(event).reportedBy !== undefined;
    const value = customValue(event);
    const runId = pickId(value, 'run_id', 'runId');
    const phase = `${taskEndOf(event) ?? 'completed'} ${truncateText(pickText(value, 'summary') ?? '', 64)}`;
    placer.endTask(placement, id, runId, isToldElsewhere ? { isToldElsewhere } : {}, phase);
  }),
  // Shown on the task's card, not in the transcript.
  [CUSTOM.taskOutput]: () => undefined,
  [CUSTOM.taskElsewhere]: byEntity(foreignTaskIdOf, (placer, placement, id) => {
    const value = customValue(placement.entry.event);
    const ofSessionId = pickId(value, 'session_id');
    // A repetition: the first report has a line and has woken the agent.
    if (value.again === true) placeUnderTask(placer, placement, id);
    else if (ofSessionId !== null) placer.endTask(placement, id, pickId(value, 'run_id'), { ofSessionId });
  }),
  [CUSTOM.taskTold]: byEntity(foreignTaskIdOf, placeUnderTask),
  [CUSTOM.requestOpened]: byEntity(requestIdOf, (placer, placement, id, task) => {
    const { derived, replaces } = readInterlude(placement.entry.event);
    if (replaces !== undefined) placer.replaceEntity(placement, 'request', replaces, id);
    if (derived?.turnId != null) placer.openInTurn(placement, 'request', id, derived.turnId);
    else placer.openEntity(placement, 'request', id, task);
  }),
  [CUSTOM.requestResolved]: byEntity(requestIdOf, (placer, placement, id) =>
    placer.endEntity(placement, 'request', id, false),
  ),
  [CUSTOM.sessionEnded]: (placer, placement) => {
    placer.closeTurn(placement, null, { state: 'interrupted', error: null });
    placement.turnId = null;
    if (readInterlude(placement.entry.event).again !== true) placer.show(placement);
  },
  [CUSTOM.messageDelivery]: byEntity(sentMessageIdOf, (placer, placement, id) =>
    placer.placeDelivery(placement, id, customValue(placement.entry.event).delivery === 'delivered'),
  ),
  [CUSTOM.commandQueued]: placeCommand('queued'),
  [CUSTOM.commandDone]: placeCommand('done'),
  [CUSTOM.commandFailed]: placeCommand('failed'),
  [CUSTOM.obligationWaived]: showEvent,
  [CUSTOM.obligationAccepted]: showEvent,
  [CUSTOM.runnerAway]: unlessIdle,
  [CUSTOM.runnerBack]: unlessIdle,
  [CUSTOM.lost]: showEvent,
  [CUSTOM.quarantined]: showEvent,
  [CUSTOM.taskGoesOn]: byEntity(foreignTaskIdOf, showEvent),
  // Shown above the first remaining turn.
  [CUSTOM.removed]: (placer, placement) => {
    const { removed } = readInterlude(placement.entry.event);
    if (removed !== undefined) placer.removeUpTo(placement, removed.upTo);
  },
  [CUSTOM.parkedAssigned]: showEvent,
  [CUSTOM.parkedDiscarded]: showEvent,
  [CUSTOM.notice]: showEvent,
};

/*
 * Chunks: each opens or continues a message, thought or call, and no event ends it. Only the first chunk must name it,
 * until the agent starts something else.
 */

/** Maximum number of speakers (the agent and its subagents) with open chunks. */
const MAX_CHUNKED = 32;

const CHUNKED: Record<string, { kind: string; field: string } | undefined> = {
  TEXT_MESSAGE_CHUNK: { kind: 'text', field: 'messageId' },
  REASONING_MESSAGE_CHUNK: { kind: 'reasoning', field: 'messageId' },
  TOOL_CALL_CHUNK: { kind: 'tool', field: 'toolCallId' },
};

type Chunks = readonly Chunked[] | undefined;

function chunkOf(chunks: Chunks, task: string | null): Chunked | undefined {
  return chunks?.find((chunk) => chunk.task === task);
}

/** Adds the id of the continued entity to a chunk that omits it. */
export function resolveChunk(chunks: Chunks, entry: EventEntry, task: string | null): EventEntry {
  const { event } = entry;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  if (chunked === undefined || (event[chunked.field] ?? '') !== '') return entry;
  const before = chunkOf(chunks, task);
  return before?.kind === chunked.kind ? { ...entry, event: { ...event, [chunked.field]: before.id } } : entry;
}

/** True if the event ends open chunks. A person's message between two chunks does not. */
export function interruptsChunks(event: AgUiEvent): boolean {
  return /^RUN_|_START$/.test(event.type) && event.role !== 'user';
}

/** The open chunks after an event; the same list if unchanged. */
export function chunksAfter(chunks: Chunks, event: AgUiEvent, task: string | null): Chunks {
  const left = interruptsChunks(event) ? withoutChunk(chunks, task) : chunks;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  const id = chunked === undefined ? null : idField(event, chunked.field);
  return chunked === undefined || id === null ? left : withChunk(left, { task, kind: chunked.kind, id });
}

/** @returns the same list if this chunk continues the last one */
function withChunk(chunks: Chunks, chunk: Chunked): Chunks {
  const before = chunkOf(chunks, chunk.task);
  if (before?.kind === chunk.kind && before.id === chunk.id) return chunks;
  return [...(withoutChunk(chunks, chunk.task) ?? []), chunk].slice(-MAX_CHUNKED);
}

/** @returns the same list if the task has no open chunk */
function withoutChunk(chunks: Chunks, task: string | null): Chunks {
  if (chunkOf(chunks, task) === undefined) return chunks;
  const others = chunks?.filter((chunk) => chunk.task !== task) ?? [];
  return others.length === 0 ? undefined : others;
}
