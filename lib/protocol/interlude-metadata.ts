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
 * The well-formed fields of an event's `metadata.interlude`. Agents can write anything there; other fields are stored but
 * not passed on.
 */
export function readInterlude(event: AgUiEvent): InterludeMetadata {
  const fields: unknown = event.metadata?.interlude;
  if (!isObject(fields)) return NOTHING;
  const { turn, trigger, carries, from, ofSnapshot, derived, removed } = fields;
  const known: InterludeMetadata = {};
  for (const key of LISTS) if (Array.isArray(fields[key])) known[key] = idList(fields[key]);
  for (const key of IDS) if (isId(fields[key])) known[key] = fields[key];
  for (const key of TEXTS) if (typeof fields[key] === 'string') known[key] = fields[key];
  if (turn === 'user' || turn === 'between-run') known.turn = turn;
  if (isObject(trigger)) known.trigger = triggerOf(trigger);
  if (isObject(carries)) {
    const { taskIds, taskRunIds } = triggerOf(carries);
    const positions = idList(carries.positions);
    known.carries = { taskIds, ...(taskRunIds === undefined ? {} : { taskRunIds }), positions };
  }
  for (const key of FLAGS) if (fields[key] === true) known[key] = true;
  if (isObject(ofSnapshot)) {
    const { turnId, sameAs } = ofSnapshot;
    known.ofSnapshot = { turnId: stringOrNull(turnId), ...(typeof sameAs === 'string' && { sameAs }) };
  }
  if (isObject(derived)) known.derived = { turnId: stringOrNull(derived.turnId) };
  if (Array.isArray(fields.attachments)) known.attachments = readAttachments(fields.attachments);
  if (fields.delivery === 'queued') known.delivery = 'queued';
  if (isObject(removed)) known.removed = removedOf(removed);
  if (isObject(from) && isId(from.id) && (from.kind === 'person' || from.kind === 'agent'))
    known.from = { kind: from.kind, id: from.id };
  return known;
}

function triggerOf(fields: Fields): TurnTrigger {
  const kind = TRIGGER_KINDS.find((known) => known === fields.kind) ?? 'unknown';
  const tasks = listOf(fields.taskIds)
    .slice(0, MAX_NAMED)
    .flatMap((id, index) => (isId(id) ? [{ id, at: index }] : []));
  const trigger: TurnTrigger = { kind, taskIds: tasks.map(({ id }) => id) };
  if (fields.wokenBy === 'interlude') trigger.wokenBy = fields.wokenBy;
  if (kind === 'timer') {
    const reason = caption(textOf(fields.reason));
    if (reason !== null) trigger.reason = reason;
    const setAt = pickTime(fields, 'setAt');
    if (setAt !== null) trigger.setAt = setAt;
  }
  for (const key of ['taskRunIds', 'ofSessionIds'] as const) {
    const ids = fields[key];
    // By index, because some tasks may have been dropped.
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

/** @param more merged into the event's `metadata.interlude`, over fields of the same names */
export function withInterlude(event: AgUiEvent, more: InterludeMetadata): AgUiEvent {
  const metadata = fieldsOf(event.metadata);
  const before = fieldsOf(metadata.interlude) as InterludeMetadata;
  return { ...event, metadata: { ...metadata, interlude: { ...before, ...more } } };
}

const SERVER_MARKS = [
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
const NO_MARKS = Object.fromEntries(SERVER_MARKS.map((mark) => [mark, undefined]));

/** Removes the fields that only the server may set. */
export function withoutServerMarks(event: AgUiEvent): AgUiEvent {
  const known = readInterlude(event);
  return SERVER_MARKS.some((mark) => known[mark] !== undefined) ? withInterlude(event, NO_MARKS) : event;
}
