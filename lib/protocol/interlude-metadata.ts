import type { AgUiEvent, InterludeMetadata, RemovedTurns, TurnTrigger } from './ag-ui';
import { readAttachments } from './attachments';
import { caption, idList, idOrNull, pickTime } from './event-fields';
import { type Fields, fieldsOf, isId, isObject, listOf, textOf } from './fields';
import { MAX_NAMED } from './limits';
import { isPosition } from './position';

const NOTHING: InterludeMetadata = {};
const TRIGGER_KINDS = ['task', 'timer', 'goal', 'agent', 'unknown'] as const;
const LISTS = ['userMessageIds', 'foldedTaskIds', 'replyTo'] as const;
const FLAGS = ['whole', 'presumed', 'again', 'inferred', 'waits'] as const;
const IDS = ['taskRunId', 'clientId', 'reportedBy', 'replaces'] as const;
const TEXTS = ['taskPosition', 'assignedBy'] as const;

/**
 * What an event says under `metadata.interlude`, as far as it has the agreed shape. Agents can write anything there, so
 * the rest can't be trusted: it is stored but not passed on.
 */
export function readInterlude(event: AgUiEvent): InterludeMetadata {
  const said: unknown = event.metadata?.interlude;
  if (!isObject(said)) return NOTHING;
  const { turn, trigger, carries, from, ofSnapshot, derived, removed } = said;
  const known: InterludeMetadata = {};
  for (const key of LISTS) if (Array.isArray(said[key])) known[key] = idList(said[key]);
  for (const key of IDS) if (isId(said[key])) known[key] = said[key];
  for (const key of TEXTS) if (typeof said[key] === 'string') known[key] = said[key];
  if (turn === 'user' || turn === 'between-run') known.turn = turn;
  if (isObject(trigger)) known.trigger = triggerOf(trigger);
  if (isObject(carries)) {
    const { taskIds, taskRunIds } = triggerOf(carries);
    const positions = idList(carries.positions);
    known.carries = { taskIds, ...(taskRunIds === undefined ? {} : { taskRunIds }), positions };
  }
  for (const key of FLAGS) if (said[key] === true) known[key] = true;
  if (isObject(ofSnapshot)) {
    const { turnId, sameAs } = ofSnapshot;
    known.ofSnapshot = { turnId: stringOrNull(turnId), ...(typeof sameAs === 'string' && { sameAs }) };
  }
  if (isObject(derived)) known.derived = { turnId: stringOrNull(derived.turnId) };
  if (Array.isArray(said.attachments)) known.attachments = readAttachments(said.attachments);
  if (said.delivery === 'queued') known.delivery = 'queued';
  if (isObject(removed)) known.removed = removedOf(removed);
  if (isObject(from) && isId(from.id) && (from.kind === 'person' || from.kind === 'agent'))
    known.from = { kind: from.kind, id: from.id };
  return known;
}

function triggerOf(said: Fields): TurnTrigger {
  const kind = TRIGGER_KINDS.find((known) => known === said.kind) ?? 'unknown';
  const tasks = listOf(said.taskIds)
    .slice(0, MAX_NAMED)
    .flatMap((id, at) => (isId(id) ? [{ id, at }] : []));
  const trigger: TurnTrigger = { kind, taskIds: tasks.map(({ id }) => id) };
  if (said.wokenBy === 'interlude') trigger.wokenBy = said.wokenBy;
  if (kind === 'timer') {
    const reason = caption(textOf(said.reason));
    if (reason !== null) trigger.reason = reason;
    const setAt = pickTime(said, 'setAt');
    if (setAt !== null) trigger.setAt = setAt;
  }
  for (const key of ['taskRunIds', 'ofSessionIds'] as const) {
    const ids = said[key];
    // by the place of the task, of which some may be left out
    if (Array.isArray(ids)) trigger[key] = tasks.map(({ at }) => idOrNull(ids[at]));
  }
  return trigger;
}

function removedOf({ upTo, turns, lastId }: Fields): RemovedTurns | undefined {
  if (typeof upTo !== 'string' || !isPosition(upTo) || typeof turns !== 'number') return undefined;
  return { upTo, turns, ...(isId(lastId) && { lastId }) };
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** @param more added to what the event has under `metadata.interlude`, replacing what is there by the same names */
export function withInterlude(event: AgUiEvent, more: InterludeMetadata): AgUiEvent {
  const metadata = fieldsOf(event.metadata);
  const before = fieldsOf(metadata.interlude) as InterludeMetadata;
  return { ...event, metadata: { ...metadata, interlude: { ...before, ...more } } };
}

const MARKS = [
  'ofSnapshot',
  'derived',
  'replaces',
  'presumed',
  'again',
  'taskPosition',
  'origin',
  'delivery',
  'clientId',
  'removed',
] as const;
const NO_MARKS = Object.fromEntries(MARKS.map((mark) => [mark, undefined]));

/**
 * Removes the marks that only the server sets: parts of a snapshot, derived or presumed events, replacements and
 * repetitions, a task's position, removed turns, and messages that came through the server.
 */
export function withoutServerMarks(event: AgUiEvent): AgUiEvent {
  const said = readInterlude(event);
  return MARKS.some((mark) => said[mark] !== undefined) ? withInterlude(event, NO_MARKS) : event;
}
