import type { AgUiEvent, FileEdit, PlanEntry } from './ag-ui';
import { type Fields, fieldsOf, isId, isObject, listOf, textOf } from './fields';
import { MAX_CAPTION, MAX_EDITS, MAX_ID_LENGTH, MAX_ITEM_TEXT, MAX_NAMED, MAX_PLAN_ENTRIES, MAX_TIME } from './limits';
import type { TaskEnd } from './read-models';
import { truncateText } from './text';

/** Lenient access to the fields of a stored event: agents may send more or less than the schema says, or something else. */

/** The id of what the event is about. What is no id names nothing: its event is stored but not shown. */
export function idField(event: AgUiEvent, field: string): string | null {
  return idOrNull(event[field]);
}

export function idOrNull(value: unknown): string | null {
  return isId(value) ? value : null;
}

/** The ids that an event names, of its first MAX_NAMED. */
export function idList(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, MAX_NAMED).filter(isId) : [];
}

/** The beginning of a text that is quoted next to what it is about. Never ends in half a character. */
export function caption(text: string | null): string | null {
  return text === null ? null : truncateText(text, MAX_CAPTION);
}

/** The task that a subagent's event belongs to. Cut rather than left out: its words are not the agent's own. */
export function subagentTaskId(event: AgUiEvent): string | null {
  const id = textOf(event.subagentRunId);
  return id === null ? null : truncateText(id, MAX_ID_LENGTH);
}

/** The name of a CUSTOM event, else null. */
export function customName(event: AgUiEvent): string | null {
  return event.type === 'CUSTOM' ? textOf(event.name) : null;
}

/** The `value` of a CUSTOM event; an empty object if it is not an object. */
export function customValue(event: AgUiEvent): Fields {
  return fieldsOf(event.value);
}

/** A field under any of its names: agents write snake_case, Interlude's own records camelCase. */
export function pick(value: Fields, ...names: string[]): unknown {
  for (const name of names) if (value[name] !== undefined && value[name] !== null) return value[name];
  return undefined;
}

export function pickText(value: Fields, ...names: string[]): string | null {
  const found = pick(value, ...names);
  return typeof found === 'string' ? found : null;
}

/** A number beyond ±2^53 is ignored: it is neither a count nor a time, and a database could not return it. */
export function pickNumber(value: Fields, ...names: string[]): number | null {
  const found = pick(value, ...names);
  return typeof found === 'number' && Math.abs(found) <= Number.MAX_SAFE_INTEGER ? found : null;
}

/** Epoch milliseconds that a Date can hold. */
export function pickTime(value: Fields, ...names: string[]): number | null {
  const found = pickNumber(value, ...names);
  return found !== null && found >= 0 && found <= MAX_TIME ? found : null;
}

export function pickId(value: Fields, ...names: string[]): string | null {
  return idOrNull(pick(value, ...names));
}

export function stringList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];
}

/** The text of an AG-UI content: a string, or the text parts of a list. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content);
  const texts = content.map((part) => fieldsOf(part).text).filter((text) => text !== undefined && text !== '');
  return texts.map((text) => (typeof text === 'string' ? text : JSON.stringify(text))).join('\n');
}

/** What streams, by its type: a message, a thought or a call. */
export type StreamedKind = 'text' | 'reasoning' | 'tool';

/** What an event of this type is about, if that streams. */
export function streamedKind(type: string): StreamedKind | null {
  if (type.startsWith('TEXT_MESSAGE_')) return 'text';
  if (type.startsWith('REASONING_')) return 'reasoning';
  return type.startsWith('TOOL_CALL_') ? 'tool' : null;
}

/** The task a `task:*` event is about, else null. */
export function taskEventId(event: AgUiEvent): string | null {
  const name = customName(event);
  if (name === null || !name.startsWith('task:')) return null;
  return pickId(customValue(event), 'task_id', 'taskId');
}

/**
 * The user messages that started a run: those at the end of its input, after the last message that is not a person's,
 * at most MAX_NAMED. Anything before them is history.
 */
export function inputUserMessages(event: AgUiEvent): { id: string; text: string }[] {
  const messages = listOf(fieldsOf(event.input).messages);
  const found: { id: string; text: string }[] = [];
  for (let index = messages.length - 1; index >= 0 && found.length < MAX_NAMED; index--) {
    const { id, role, content } = fieldsOf(messages[index]);
    if (role !== 'user' || typeof id !== 'string') break;
    if (isId(id)) found.push({ id, text: contentText(content) });
  }
  return found.reverse();
}

/** The names of the CUSTOM events Interlude understands. Others are stored and ignored. */
export const CUSTOM = {
  taskStarted: 'task:started',
  taskProgress: 'task:progress',
  taskUpdated: 'task:updated',
  taskCompleted: 'task:completed',
  /** What a task wrote. `value` is TaskOutputValue; where ingest has made one of many, `output` in it is a TaskOutput. */
  taskOutput: 'task:output',
  requestOpened: 'request:opened',
  requestResolved: 'request:resolved',
  /** The agent's process runs, again or for the first time: the session can be written to before its first turn. */
  sessionStarted: 'session:started',
  /** The agent's process ended. `value` is `{ reason, exitCode? }`. */
  sessionEnded: 'session:ended',
  /** What a producer had to drop. `value` is `{ count, reason }`. Written by ingest from a `lost` record. */
  lost: 'interlude:lost',
  /**
   * A record ingest could not take as it was. `value` is `{ seq, code, message }`; of those that came before the session
   * began, `{ count, message }`. Written by ingest.
   */
  quarantined: 'interlude:quarantined',
  /** Here was told of the end of another session's task. `value` is TaskElsewhereValue. Written by ingest. */
  taskElsewhere: 'interlude:task-elsewhere',
  /**
   * A turn of another session was told of the end of a task of this one. `value` is TaskToldValue. Written by ingest.
   */
  taskTold: 'interlude:task-told',
  /** A person said whose a parked task is. `value` is ParkedSettledValue. Written by the server. */
  parkedAssigned: 'interlude:parked-assigned',
  /** A person said that what was told of a parked task is of no use. `value` is ParkedSettledValue. */
  parkedDiscarded: 'interlude:parked-discarded',
  /**
   * The oldest turns were removed: `metadata.interlude.removed` says which, of which `value` is a copy,
   * `{ up_to, turns }`. Written by the server.
   */
  removed: 'interlude:removed',
  /** A task still runs whose turn was removed: from here on it stands here. `value` is `{ task_id, run_id? }`. */
  taskGoesOn: 'interlude:task-goes-on',
  /** Something worth a line in the transcript. `value` is `{ text, tone? }`. */
  notice: 'interlude:notice',
  /** How a message that was queued for the agent went on. `value` is MessageDeliveryValue. Written by the server. */
  messageDelivery: 'message:delivery',
  /** What people asked of the agent besides messages. `value` is CommandEventValue. Written by the server. */
  commandQueued: 'command:queued',
  commandDone: 'command:done',
  commandFailed: 'command:failed',
  /** A reply was waived: it is not owed any longer, though nobody replied. `value` is ObligationWaivedValue. */
  obligationWaived: 'obligation:waived',
  /** A person took a text for the reply to a message. `value` is ObligationAcceptedValue. Written by the server. */
  obligationAccepted: 'obligation:accepted',
  /** Nothing is heard of the session any more. `value` is RunnerAwayValue. Written by the server. */
  runnerAway: 'runner:away',
  /** The same runner is there again. `value` is `{ away_since, at_rest? }`. Written by the server. */
  runnerBack: 'runner:back',
} as const;

/** The words of agents for the end of a task, each with ours. */
const ENDS: Record<string, TaskEnd | undefined> = {
  completed: 'completed',
  success: 'completed',
  succeeded: 'completed',
  done: 'completed',
  failed: 'failed',
  error: 'failed',
  stopped: 'stopped',
  killed: 'stopped',
  cancelled: 'stopped',
  canceled: 'stopped',
  lost: 'lost',
};

/** @returns null while the task runs, or for an unknown word */
export function parseTaskEnd(status: string | null): TaskEnd | null {
  return status !== null && Object.hasOwn(ENDS, status) ? (ENDS[status] ?? null) : null;
}

/** The end of a task by one of its `task:*` events; null if it names none. */
export function taskEndOf(event: AgUiEvent): TaskEnd | null {
  // A task that writes goes on.
  if (customName(event) === CUSTOM.taskOutput) return null;
  const said = parseTaskEnd(pickText(customValue(event), 'status'));
  return said ?? (customName(event) === CUSTOM.taskCompleted ? 'completed' : null);
}

const STATUSES: readonly unknown[] = ['pending', 'in_progress', 'completed'] satisfies PlanEntry['status'][];

/**
 * The entries of a plan: at most MAX_PLAN_ENTRIES, each with MAX_CAPTION of its text. One without a text is left out, and
 * one whose status is not known is still to be done.
 *
 * @returns null if it is no list
 */
export function readPlanEntries(said: unknown): { entries: PlanEntry[]; omitted: number } | null {
  if (!Array.isArray(said)) return null;
  const told = said.flatMap((entry) => entryOf(entry) ?? []);
  const entries = told.slice(0, MAX_PLAN_ENTRIES);
  return { entries, omitted: told.length - entries.length };
}

function entryOf(told: unknown): PlanEntry | null {
  if (!isObject(told) || typeof told.content !== 'string') return null;
  const { content, status, priority } = told;
  return {
    content: truncateText(content, MAX_CAPTION),
    status: STATUSES.includes(status) ? (status as PlanEntry['status']) : 'pending',
    ...(typeof priority === 'string' ? { priority: truncateText(priority, MAX_PRIORITY) } : {}),
  };
}

/** It is a word. */
const MAX_PRIORITY = 40;

/**
 * What a call changed in files, as far as it can be shown: at most MAX_EDITS changes with MAX_ITEM_TEXT of text
 * together. One that is not as described, or that there is no room for, is left out.
 */
export function readFileEdits(said: unknown): FileEdit[] {
  const edits: FileEdit[] = [];
  let room = MAX_ITEM_TEXT;
  for (const told of listOf(said)) {
    if (edits.length === MAX_EDITS) break;
    const edit = editOf(told);
    if (edit === null || editLength(edit) > room) continue;
    room -= editLength(edit);
    edits.push(edit);
  }
  return edits;
}

/** In UTF-16 code units. */
export function editLength({ path, before, after }: FileEdit): number {
  return path.length + before.length + after.length;
}

function editOf(told: unknown): FileEdit | null {
  if (!isObject(told)) return null;
  const { path, before, after } = told;
  if (typeof path !== 'string' || typeof before !== 'string' || typeof after !== 'string') return null;
  return { path: truncateText(path, MAX_CAPTION), before, after };
}
