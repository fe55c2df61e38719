import type { AgUiEvent, FileEdit, PlanEntry, RequestOption } from './ag-ui';
import { type Fields, fieldsOf, isId, isObject, listOf, textOf } from './fields';
import {
  MAX_CAPTION,
  MAX_EDITS,
  MAX_ID_LENGTH,
  MAX_ITEM_TEXT,
  MAX_NAMED,
  MAX_OPTION_LABEL,
  MAX_OPTIONS,
  MAX_PLAN_ENTRIES,
  MAX_TIME,
} from './limits';
import type { TaskEnd } from './read-models';
import { truncateText } from './text';

/** Lenient access to the fields of a stored event: agents may send more, less or other fields than the schema defines. */

/** The id of the event's subject. Without a valid id, the event is stored but not shown. */
export function idField(event: AgUiEvent, field: string): string | null {
  return idOrNull(event[field]);
}

export function idOrNull(value: unknown): string | null {
  return isId(value) ? value : null;
}

/** The ids among the first MAX_NAMED entries. */
export function idList(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, MAX_NAMED).filter(isId) : [];
}

/** A text truncated for a caption, without half a surrogate pair at the end. */
export function caption(text: string | null): string | null {
  return text === null ? null : truncateText(text, MAX_CAPTION);
}

/**
 * The task of a subagent's event. An overlong id is truncated, not dropped, because without it the event would count as
 * the agent's own.
 */
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

/** A field under any of its names: agents use snake_case, Interlude's own records camelCase. */
export function pick(value: Fields, ...names: string[]): unknown {
  for (const name of names) if (value[name] !== undefined && value[name] !== null) return value[name];
  return undefined;
}

export function pickText(value: Fields, ...names: string[]): string | null {
  const found = pick(value, ...names);
  return typeof found === 'string' ? found : null;
}

/** A number within ±2^53. Larger ones are neither counts nor times, and a database can't return them. */
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

/** The text of an AG-UI `content`: a string, or the text parts of a list. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content);
  const texts = content.map((part) => fieldsOf(part).text).filter((text) => text !== undefined && text !== '');
  return texts.map((text) => (typeof text === 'string' ? text : JSON.stringify(text))).join('\n');
}

/** Kinds of streamed content: messages, thoughts and calls. */
export type StreamedKind = 'text' | 'reasoning' | 'tool';

/** The streamed kind of an event type; null for others. */
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

/** The user messages that started a run: those at the end of its input, at most MAX_NAMED. Earlier ones are history. */
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
  /** Output of a task. `value` is TaskOutputValue. If ingest merged several events, its `output` is a TaskOutput. */
  taskOutput: 'task:output',
  requestOpened: 'request:opened',
  requestResolved: 'request:resolved',
  /** The agent's process started or restarted, so the session accepts messages before its first turn. */
  sessionStarted: 'session:started',
  /** The agent's process ended. `value` is `{ reason, exitCode? }`. */
  sessionEnded: 'session:ended',
  /** A producer dropped records. `value` is `{ count, reason }`. Written by ingest from a `lost` record. */
  lost: 'interlude:lost',
  /**
   * A rejected record. `value` is `{ seq, code, message }`, or `{ count, message }` for all from before the session
   * started. Written by ingest.
   */
  quarantined: 'interlude:quarantined',
  /** The end of another session's task was reported here. `value` is TaskElsewhereValue. Written by ingest. */
  taskElsewhere: 'interlude:task-elsewhere',
  /** A turn of another session received the end of this session's task. `value` is TaskToldValue. Written by ingest. */
  taskTold: 'interlude:task-told',
  /** A person assigned a parked task. `value` is ParkedSettledValue. Written by the server. */
  parkedAssigned: 'interlude:parked-assigned',
  /** A person discarded a parked task's records. `value` is ParkedSettledValue. Written by the server. */
  parkedDiscarded: 'interlude:parked-discarded',
  /**
   * The oldest turns were removed: `metadata.interlude.removed` identifies them; `value` is a copy of it,
   * `{ up_to, turns }`. Written by the server.
   */
  removed: 'interlude:removed',
  /** The place of a running task whose turn was removed. `value` is `{ task_id, run_id? }`. */
  taskGoesOn: 'interlude:task-goes-on',
  /** Something worth a line in the transcript. `value` is `{ text, tone? }`. */
  notice: 'interlude:notice',
  /** Progress of a queued message. `value` is MessageDeliveryValue. Written by the server. */
  messageDelivery: 'message:delivery',
  /** A command other than a message. `value` is CommandEventValue. Written by the server. */
  commandQueued: 'command:queued',
  commandDone: 'command:done',
  commandFailed: 'command:failed',
  /** A pending reply was waived. `value` is ObligationWaivedValue. */
  obligationWaived: 'obligation:waived',
  /** A person accepted a text as the reply. `value` is ObligationAcceptedValue. Written by the server. */
  obligationAccepted: 'obligation:accepted',
  /** The session gives no sign of life. `value` is RunnerAwayValue. Written by the server. */
  runnerAway: 'runner:away',
  /** The same runner is back. `value` is `{ away_since, at_rest? }`. Written by the server. */
  runnerBack: 'runner:back',
} as const;

/** Names of Interlude's own CUSTOM events; the values of others are free-form. */
export const CUSTOM_NAMES: ReadonlySet<unknown> = new Set(Object.values(CUSTOM));

/** Words that agents use for the end of a task. */
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
  // Output does not end a task, whatever its status.
  if (customName(event) === CUSTOM.taskOutput) return null;
  const end = parseTaskEnd(pickText(customValue(event), 'status'));
  return end ?? (customName(event) === CUSTOM.taskCompleted ? 'completed' : null);
}

const STATUSES: readonly unknown[] = ['pending', 'in_progress', 'completed'] satisfies PlanEntry['status'][];

/**
 * The entries of a plan: at most MAX_PLAN_ENTRIES, each with MAX_CAPTION of its text. An entry without text is dropped;
 * an unknown status counts as pending.
 *
 * @returns null if the value is not a list
 */
export function readPlanEntries(value: unknown): { entries: PlanEntry[]; omitted: number } | null {
  if (!Array.isArray(value)) return null;
  const all = value.flatMap((entry) => planEntryOf(entry) ?? []);
  const entries = all.slice(0, MAX_PLAN_ENTRIES);
  return { entries, omitted: all.length - entries.length };
}

function planEntryOf(value: unknown): PlanEntry | null {
  if (!isObject(value) || typeof value.content !== 'string') return null;
  const { content, status, priority } = value;
  return {
    content: truncateText(content, MAX_CAPTION),
    status: STATUSES.includes(status) ? (status as PlanEntry['status']) : 'pending',
    ...(typeof priority === 'string' ? { priority: truncateText(priority, MAX_PRIORITY) } : {}),
  };
}

const MAX_PRIORITY = 40;

/**
 * A call's file changes: at most MAX_EDITS, with MAX_ITEM_TEXT of text in total. Malformed changes, and those that
 * exceed the total, are dropped.
 */
export function readFileEdits(value: unknown): FileEdit[] {
  const edits: FileEdit[] = [];
  let room = MAX_ITEM_TEXT;
  for (const entry of listOf(value)) {
    if (edits.length === MAX_EDITS) break;
    const edit = editOf(entry);
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

function editOf(value: unknown): FileEdit | null {
  if (!isObject(value)) return null;
  const { path, before, after } = value;
  if (typeof path !== 'string' || typeof before !== 'string' || typeof after !== 'string') return null;
  return { path: truncateText(path, MAX_CAPTION), before, after };
}

/** The tool that Claude Code and similar agents use to ask a person. */
export const QUESTION_TOOL = 'AskUserQuestion';

/**
 * The answers that a request offers: at most MAX_OPTIONS, with labels truncated to MAX_OPTION_LABEL. If any is malformed
 * or duplicate, none are returned, because a person might have chosen the dropped one.
 */
export function readRequestOptions(value: unknown): RequestOption[] {
  if (!Array.isArray(value)) return [];
  const options: RequestOption[] = [];
  for (const entry of value.slice(0, MAX_OPTIONS)) {
    const option = optionOf(entry);
    if (option === null || options.some(({ id }) => id === option.id)) return [];
    options.push(option);
  }
  return options;
}

function optionOf(value: unknown): RequestOption | null {
  if (!isObject(value)) return null;
  const { id, label, kind, isLasting } = value;
  if (!isId(id) || typeof label !== 'string' || label.trim() === '') return null;
  if (kind !== 'allow' && kind !== 'deny') return null;
  return { id, label: truncateText(label, MAX_OPTION_LABEL), kind, ...(isLasting === true ? { isLasting } : {}) };
}

/** The option for a plain yes or no: if offered, one that holds only for this request. */
export function defaultOption(options: readonly RequestOption[], kind: RequestOption['kind']): RequestOption | null {
  const fitting = options.filter((option) => option.kind === kind);
  return (kind === 'allow' ? fitting.find(({ isLasting }) => isLasting !== true) : fitting[0]) ?? null;
}
