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
 * Where each event stands: in which turn, under which task, or nowhere.
 *
 * Ingest runs this once per event and writes the answer beside it, so that a transcript page is a range read; the
 * browser runs it over live frames. Both carry the same bounded state (`TurnPlaces`), which is why a live transcript
 * equals a reloaded one.
 *
 * Claims: a user message and the end of a task first stand where they happened. The turn that answers them names them
 * (`metadata.interlude`), and they move into it, whatever else was going on when they arrived. So a reply is never one
 * turn late, and a between-run turn begins with its cause.
 */

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
  const { ofSnapshot } = readInterlude(entry.event);
  if (ofSnapshot !== undefined) {
    placeOfSnapshot(placer, placement, ofSnapshot.turnId);
    return placement;
  }
  // A call of a run that is told again is the one that is known, not another one under its id.
  if (placement.isRetold && entry.event.type === 'TOOL_CALL_START')
    placement.entry = { ...entry, event: withInterlude(entry.event, { again: true }) };
  const place = Object.hasOwn(PLACE, entry.event.type) ? PLACE[entry.event.type] : undefined;
  if (place !== undefined) place(placer, placement, task);
  // Everything else is stored but not shown; within a turn it still counts as part of it.
  else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  return placement;
}

/** What a snapshot repeats stands where it is known; what is new in it stands where it came, and no turn claims it. */
function placeOfSnapshot(placer: TurnPlacer, placement: Placement, turnId: string | null): void {
  const { event } = placement.entry;
  const kind = streamedKind(event.type);
  if (kind !== null) placement.entityId = idOf(kind)(event);
  placement.turnId = turnId;
  if (kind !== null && placement.entityId !== null && event.type.endsWith('_CHUNK')) {
    placer.tellInChunk(kind, placement.entityId);
  }
  if (turnId !== null) return;
  placement.role = textOf(event.role);
  placer.show(placement);
}

type Place = (placer: TurnPlacer, placement: Placement, task: string | null) => void;

/** Places what an event is about by its id; without one it is shown nowhere. */
const about =
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

const MESSAGE = (event: AgUiEvent) => idField(event, 'messageId');
const CALL = (event: AgUiEvent) => idField(event, 'toolCallId');
const REQUEST = (event: AgUiEvent) => pickId(customValue(event), 'request_id', 'requestId');
const SENT = (event: AgUiEvent) => pickId(customValue(event), 'message_id', 'messageId');
const COMMAND = (event: AgUiEvent) => pickId(customValue(event), 'command_id', 'commandId');
const FOREIGN_TASK = (event: AgUiEvent) => pickId(customValue(event), 'task_id');

const idOf = (kind: StreamedKind) => (kind === 'tool' ? CALL : MESSAGE);

const roleOf = (kind: StreamedKind, event: AgUiEvent) => (kind === 'text' ? (textOf(event.role) ?? 'assistant') : null);

const starts = (kind: StreamedKind) =>
  about(idOf(kind), (placer, placement, id, task) => {
    placement.role = roleOf(kind, placement.entry.event);
    if (placement.role === 'user' && task === null) placer.openUserMessage(placement, id);
    else placer.startEntity(placement, kind, id, task);
  });

const continues = (kind: StreamedKind, streaming: FoldedType) =>
  about(idOf(kind), (placer, placement, id, task) => placer.continueEntity(placement, kind, id, task, streaming));

const ends = (kind: StreamedKind, keep: boolean) =>
  about(idOf(kind), (placer, placement, id) => placer.endEntity(placement, kind, id, keep));

/** A chunk both opens and continues, and no event ends it: its rows stay as they are. */
const chunks = (kind: StreamedKind) =>
  about(idOf(kind), (placer, placement, id, task) => {
    placement.role = roleOf(kind, placement.entry.event);
    placer.openChunk(placement, kind, id, task);
    placer.tellChunks(withChunk(placer.chunks, { task, kind, id }));
  });

/**
 * A plan stands once in each turn that tells of it: an agent that goes on with one in its next turn has it there, as far
 * as it has come by then. Other activities are stored and not shown.
 */
const showPlan: Place = (placer, placement, task) => {
  const { event } = placement.entry;
  if (task !== null) placement.turnId = `task:${task}`;
  else if (isPlan(event)) placer.show(placement);
  else placement.turnId = placer.openTurnId;
};

function isPlan(event: AgUiEvent): boolean {
  const { activityType, content } = event;
  return activityType === 'plan' && MESSAGE(event) !== null && Array.isArray(fieldsOf(content).entries);
}

const PLACE: Record<string, Place | undefined> = {
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
  // The result may come turns later: the call keeps its home until then.
  TOOL_CALL_END: ends('tool', true),
  TOOL_CALL_CHUNK: chunks('tool'),
  TOOL_CALL_RESULT: about(CALL, (placer, placement, id, task) => {
    placer.openEntity(placement, 'tool', id, task);
    placer.endEntity(placement, 'tool', id, false);
  }),
  ACTIVITY_SNAPSHOT: showPlan,
  RUN_STARTED: (placer, placement) => {
    const { event } = placement.entry;
    const metadata = readInterlude(event);
    const input = inputUserMessages(event);
    // A run without input that has a parent was started by the agent itself (Ambient's synthetic turns).
    const byItself = event.input === undefined && idField(event, 'parentRunId') !== null;
    const said = metadata.turn === 'user' || metadata.turn === 'between-run' ? metadata.turn : null;
    const kind = said ?? (byItself ? 'between-run' : 'user');
    const runId = idField(event, 'runId');
    const named = metadata.userMessageIds ?? (input.length > 0 ? input.map(({ id }) => id) : null);
    const messageIds = named ?? (kind === 'user' ? null : []);
    const taskIds = stringList(metadata.trigger?.taskIds);
    const resumes = listOf(fieldsOf(event.input).resume).length > 0;
    if (runId !== null && !resumes && placer.retell(placement, runId, { messageIds, taskIds })) return;
    placer.openTurn(placement, {
      id: runId ?? `run:${placement.entry.position}`,
      kind,
      parentTurnId: idField(event, 'parentRunId'),
      trigger: metadata.trigger ?? (kind === 'between-run' ? placer.likelyTrigger(byItself) : null),
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
    const place = Object.hasOwn(CUSTOM_PLACE, name) ? CUSTOM_PLACE[name] : undefined;
    if (place !== undefined) place(placer, placement, task);
    else placement.turnId = task === null ? placer.openTurnId : `task:${task}`;
  },
};

const underTask = (_placer: TurnPlacer, placement: Placement, id: string) => {
  placement.turnId = `task:${id}`;
};

/** The end of a command stands where it was asked for, and the answer to a request stands with the request. */
const ofCommand = (state: 'queued' | 'done' | 'failed') =>
  about(COMMAND, (placer, placement, id) => {
    const requestId = REQUEST(placement.entry.event);
    if (requestId !== null && placer.join(placement, 'request', requestId)) placement.entityId = requestId;
    else if (state === 'queued') placer.openEntity(placement, 'command', id, null);
    else if (placer.join(placement, 'command', id)) placer.endEntity(placement, 'command', id, false);
    // The command had ended already, or the agent has gone on from the request: then only a failure is worth a line.
    else if (state === 'failed' || requestId === null) placer.show(placement);
  });

const shown = (placer: TurnPlacer, placement: Placement) => placer.show(placement);
/** Where nothing was under way, a runner that goes and comes back is no news in the transcript. */
const unlessAtRest = (placer: TurnPlacer, placement: Placement) => {
  if (customValue(placement.entry.event).at_rest === true) placement.turnId = null;
  else placer.show(placement);
};

const CUSTOM_PLACE: Record<string, Place | undefined> = {
  [CUSTOM.taskStarted]: about(taskEventId, (placer, placement, id) =>
    placer.startTask(placement, id, pickId(customValue(placement.entry.event), 'run_id', 'runId')),
  ),
  [CUSTOM.taskProgress]: about(taskEventId, underTask),
  [CUSTOM.taskUpdated]: about(taskEventId, underTask),
  [CUSTOM.taskCompleted]: about(taskEventId, (placer, placement, id) => {
    const { event } = placement.entry;
    const isToldElsewhere = readInterlude(event).reportedBy !== undefined;
    const value = customValue(event);
    const runId = pickId(value, 'run_id', 'runId');
    const end = `${taskEndOf(event) ?? 'completed'} ${truncateText(pickText(value, 'summary') ?? '', 64)}`;
    placer.endTask(placement, id, runId, isToldElsewhere ? { isToldElsewhere } : {}, end);
  }),
  // on the task's card, and nowhere in the transcript
  [CUSTOM.taskOutput]: () => undefined,
  [CUSTOM.taskElsewhere]: about(FOREIGN_TASK, (placer, placement, id) => {
    const value = customValue(placement.entry.event);
    const ofSessionId = pickId(value, 'session_id');
    // This session has said so before: that has its line, and has woken its agent.
    if (value.again === true) underTask(placer, placement, id);
    else if (ofSessionId !== null) placer.endTask(placement, id, pickId(value, 'run_id'), { ofSessionId });
  }),
  [CUSTOM.taskTold]: about(FOREIGN_TASK, underTask),
  [CUSTOM.requestOpened]: about(REQUEST, (placer, placement, id, task) => {
    const { derived, replaces } = readInterlude(placement.entry.event);
    if (replaces !== undefined) placer.takePlaceOf(placement, 'request', replaces, id);
    if (derived?.turnId != null) placer.openIn(placement, 'request', id, derived.turnId);
    else placer.openEntity(placement, 'request', id, task);
  }),
  [CUSTOM.requestResolved]: about(REQUEST, (placer, placement, id) =>
    placer.endEntity(placement, 'request', id, false),
  ),
  [CUSTOM.sessionEnded]: (placer, placement) => {
    placer.closeTurn(placement, null, { state: 'interrupted', error: null });
    placement.turnId = null;
    if (readInterlude(placement.entry.event).again !== true) placer.show(placement);
  },
  [CUSTOM.messageDelivery]: about(SENT, (placer, placement, id) =>
    placer.deliver(placement, id, customValue(placement.entry.event).delivery === 'delivered'),
  ),
  [CUSTOM.commandQueued]: ofCommand('queued'),
  [CUSTOM.commandDone]: ofCommand('done'),
  [CUSTOM.commandFailed]: ofCommand('failed'),
  [CUSTOM.obligationWaived]: shown,
  [CUSTOM.obligationAccepted]: shown,
  [CUSTOM.runnerAway]: unlessAtRest,
  [CUSTOM.runnerBack]: unlessAtRest,
  [CUSTOM.lost]: shown,
  [CUSTOM.quarantined]: shown,
  [CUSTOM.taskGoesOn]: about(FOREIGN_TASK, shown),
  // above the first turn that is left, and nowhere in one
  [CUSTOM.removed]: (placer, placement) => {
    const { removed } = readInterlude(placement.entry.event);
    if (removed !== undefined) placer.forget(placement, removed.upTo);
  },
  [CUSTOM.parkedAssigned]: shown,
  [CUSTOM.parkedDiscarded]: shown,
  [CUSTOM.notice]: shown,
};

/**
 * Chunks: each opens or continues a message, a thought or a call, and no event says where it ends. Only the first chunk
 * has to name it, until the agent begins something else.
 */

/** Most speakers whose chunks are followed at a time: the agent and its subagents. */
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

/** The entry, with the id of what its chunk continues if the chunk leaves it out. */
export function namedChunk(chunks: Chunks, entry: EventEntry, task: string | null): EventEntry {
  const { event } = entry;
  const chunked = Object.hasOwn(CHUNKED, event.type) ? CHUNKED[event.type] : undefined;
  if (chunked === undefined || (event[chunked.field] ?? '') !== '') return entry;
  const before = chunkOf(chunks, task);
  return before?.kind === chunked.kind ? { ...entry, event: { ...event, [chunked.field]: before.id } } : entry;
}

/** Whether the event begins something else. A person's message may come between two chunks. */
export function endsChunks(event: AgUiEvent): boolean {
  return /^RUN_|_START$/.test(event.type) && event.role !== 'user';
}

/** @returns the chunks behind an event that names what it is about; the same list if nothing changes */
export function chunksAfter(chunks: Chunks, event: AgUiEvent, task: string | null): Chunks {
  const left = endsChunks(event) ? withoutChunk(chunks, task) : chunks;
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

/** @returns the same list if the task has told nothing in chunks */
function withoutChunk(chunks: Chunks, task: string | null): Chunks {
  if (chunkOf(chunks, task) === undefined) return chunks;
  const others = chunks?.filter((chunk) => chunk.task !== task) ?? [];
  return others.length === 0 ? undefined : others;
}
