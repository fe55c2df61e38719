import type { TaskEventValue, TurnTrigger } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';
import { truncateWithNote } from '../writer/size-limits';
import { taskUsage } from '../writer/task-runs';
import { isTooDeep } from './agui-frames';

/** Activities kept for later patches. */
const MAX_ACTIVITIES = 128;
const MAX_ACTIVITY = 256 * 1024;
const MAX_NOTED = 256;

const MASTRA_TASK = 'mastra-background-task';

/**
 * Tracks background work in the three forms AG-UI servers use: CUSTOM `task:*` (Ambient's runner, Interlude),
 * activities (Mastra), and a list to query.
 *
 * @see `@ag-ui/mastra` 1.1.2 for the content of its activities
 */
export class BackgroundTasks {
  readonly #writer: SessionWriter;
  readonly #isLocal: boolean;
  readonly #activities = new Map<string, unknown>();
  readonly #progress = new Map<string, string>();
  /** Ended tasks, whose repeated end does not start a turn. */
  readonly #endedTasks = new Map<string, true>();
  /** Tasks that ended before this process. If one starts inside a turn, it is a new task with a reused id. */
  readonly #before: Set<string>;
  /** Tasks that ended between turns. */
  #endedOutside: string[] = [];
  /** Tasks that ended within the last turn. */
  #endedInside: string[] = [];

  constructor(writer: SessionWriter, isLocal: boolean, ended: readonly string[] = []) {
    this.#writer = writer;
    this.#isLocal = isLocal;
    this.#before = new Set(ended);
    for (const id of ended) this.#endedTasks.set(id, true);
  }

  get ended(): string[] {
    return [...this.#endedTasks.keys()];
  }

  /** Begins a user turn, which also delivers the earlier ends. */
  userTurnBegins(): void {
    this.#endedInside = this.#endedOutside;
    this.#endedOutside = [];
  }

  /** Trigger of a between-run turn beginning now: the tasks that just ended. Clears them. */
  takeTrigger(): TurnTrigger {
    const taskIds = this.#endedOutside.length > 0 ? this.#endedOutside : this.#endedInside;
    this.#endedOutside = [];
    this.#endedInside = [];
    return taskIds.length === 0 ? { kind: 'unknown', taskIds } : { kind: 'task', taskIds };
  }

  /** @returns true for a task event */
  readCustom(name: string | null, content: unknown): boolean {
    if (name === null || !name.startsWith('task:')) return false;
    const value = taskValueOf(content, this.#isLocal);
    if (value === null) return false;
    switch (name) {
      case CUSTOM.taskStarted:
        this.#start(value);
        return true;
      case CUSTOM.taskProgress:
        this.#update(value, 'progress');
        return true;
      case CUSTOM.taskUpdated:
        this.#update(value, 'updated');
        return true;
      case CUSTOM.taskCompleted:
        this.#ended(value, endIn(value.status) ?? (value.error ? 'failed' : 'completed'));
        return true;
      default:
        return false;
    }
  }

  /** @returns true for a task activity */
  readActivity({ type, messageId, activityType, content, patch }: Fields): boolean {
    const id = textOf(messageId);
    if (activityType !== MASTRA_TASK || id === null) return false;
    const now = type === 'ACTIVITY_DELTA' ? applyPatch(this.#activities.get(id) ?? {}, patch) : content;
    if (!isObject(now) || isTooDeep(now) || JSON.stringify(now).length > MAX_ACTIVITY) return true;
    setBounded(this.#activities, id, now, MAX_ACTIVITIES);
    this.#mastra(now, id);
    return true;
  }

  /** Handles a run's subagent as a task, to which its content is attributed. */
  readSubagent({ type, subagentRunId, name, description, parentToolCallId, message, outcome }: Fields): boolean {
    const value = taskValueOf({ task_id: subagentRunId }, this.#isLocal);
    if (value === null) return false;
    if (type === 'SUBAGENT_STARTED') {
      const about = { description: boundedText(description) ?? boundedText(name), subagent_type: boundedText(name) };
      const call = textOf(parentToolCallId);
      this.#writer.taskStarted({ ...value, ...compact(about), task_type: 'local_agent', tool_use_id: call });
    } else if (type === 'SUBAGENT_ERROR') {
      this.#writer.taskCompleted({ ...value, status: 'failed', error: boundedText(message) ?? null });
    } else if (type === 'SUBAGENT_FINISHED') {
      if (fieldsOf(outcome).type === 'suspended') this.#update({ ...value, status: 'suspended' }, 'updated');
      else this.#writer.taskCompleted({ ...value, status: 'completed' });
    } else return false;
    return true;
  }

  /**
   * Applies the server's task list, which includes ended tasks.
   *
   * @param about tasks open at the time of the query; the list lacks later ones
   */
  readList(body: unknown, about: readonly string[]): void {
    const list = Array.isArray(body) ? body : fieldsOf(body).tasks;
    if (!Array.isArray(list)) return;
    const open = new Set(about);
    for (const entry of listOf(list)) {
      const value = taskValueOf(entry, this.#isLocal);
      if (value === null) continue;
      const end = endIn(value.status);
      if (end === null) {
        if (!open.has(value.task_id)) this.#start(value);
      } else if (open.has(value.task_id)) this.#ended(value, end);
      open.delete(value.task_id);
    }
    for (const id of open) {
      this.#writer.taskCompleted({ task_id: id, status: 'lost', error: 'The server no longer lists this task.' });
    }
  }

  /** Marks tasks as lost when nothing can report their ends. */
  presumeLost(about: readonly string[]): void {
    const error = 'The server reports neither running tasks nor events between turns.';
    for (const id of new Set(about)) {
      this.#writer.taskCompleted({ task_id: id, status: 'lost', error });
    }
  }

  #mastra(content: Fields, messageId: string): void {
    const { status, toolName, toolCallId, error, result, elapsedMs } = content;
    const id = textOf(content.taskId) ?? messageId;
    const took = numberOf(elapsedMs);
    const value: TaskEventValue = {
      task_id: id,
      ...compact({ description: boundedText(toolName), tool_use_id: textOf(toolCallId) }),
      ...(took === null ? {} : { usage: { duration_ms: took } }),
    };
    const end = endIn(status);
    if (end !== null) {
      const summary = end === 'completed' ? summaryOf(result) : undefined;
      this.#ended({ ...value, ...compact({ summary, error: summaryOf(error) }), status: end }, end);
    } else if (this.#writer.isRunning(id)) {
      const last = summaryOf(listOf(content.outputs).at(-1));
      this.#update({ ...value, ...compact({ summary: last, status: boundedText(status) }) }, 'progress');
    } else this.#start({ ...value, task_type: MASTRA_TASK });
  }

  #start(value: TaskEventValue): void {
    if (this.#writer.turn !== null && this.#before.delete(value.task_id)) this.#endedTasks.delete(value.task_id);
    if (this.#endedTasks.has(value.task_id)) return;
    if (this.#writer.isRunning(value.task_id)) this.#update(value, 'updated');
    else this.#writer.taskStarted(value);
  }

  #update(value: TaskEventValue, how: 'progress' | 'updated'): void {
    const json = JSON.stringify(value);
    if (this.#endedTasks.has(value.task_id)) return;
    if (this.#progress.get(value.task_id) === json) return;
    setBounded(this.#progress, value.task_id, json, MAX_NOTED);
    if (how === 'progress') this.#writer.taskProgress(value);
    else this.#writer.taskUpdated(value);
  }

  #ended(value: TaskEventValue, status: TaskEnd): void {
    if (this.#endedTasks.has(value.task_id)) return;
    setBounded(this.#endedTasks, value.task_id, true, MAX_NOTED);
    this.#progress.delete(value.task_id);
    this.#writer.taskCompleted({ ...value, status });
    const ended = this.#writer.turn === null ? this.#endedOutside : this.#endedInside;
    if (!ended.includes(value.task_id) && ended.length < MAX_NOTED) ended.push(value.task_id);
  }
}

function summaryOf(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : (boundedText(value) ?? boundedText(JSON.stringify(value)));
}

/** Limit of a task's text, bytes of JSON. */
const MAX_TASK_TEXT = 64 * 1024;

type TaskEnd = 'completed' | 'failed' | 'stopped';

const ENDS: ReadonlyMap<string, TaskEnd> = new Map([
  ['completed', 'completed'],
  ['done', 'completed'],
  ['success', 'completed'],
  ['failed', 'failed'],
  ['error', 'failed'],
  ['stopped', 'stopped'],
  ['cancelled', 'stopped'],
  ['canceled', 'stopped'],
  ['killed', 'stopped'],
]);

/** Returns the outcome for a status; null while running. */
function endIn(status: unknown): TaskEnd | null {
  return ENDS.get(textOf(status) ?? '') ?? null;
}

/**
 * Normalizes the value of a `task:*` event.
 *
 * @param isLocal true if the agent runs on this machine, so that output files are local
 * @returns null without a task id
 */
function taskValueOf(value: unknown, isLocal: boolean): TaskEventValue | null {
  const fields = fieldsOf(value);
  const id = textOf(fields.task_id) ?? textOf(fields.taskId) ?? textOf(fields.id);
  if (id === null) return null;
  const file = textOf(fields.output_file);
  return compact({
    task_id: truncateText(id, MAX_ID_LENGTH),
    run_id: idIn(fields.run_id),
    tool_use_id: idIn(fields.tool_use_id),
    description: boundedText(fields.description),
    task_type: boundedText(fields.task_type),
    subagent_type: boundedText(fields.subagent_type),
    parent_task_id: idIn(fields.parent_task_id),
    status: boundedText(fields.status),
    summary: boundedText(fields.summary),
    ...(isLocal ? { output_file: file } : { remote_output_file: file }),
    exit_code: numberOf(fields.exit_code),
    error: boundedText(fields.error),
    usage: taskUsage(fields.usage),
    last_tool_name: boundedText(fields.last_tool_name),
    started_at: numberOf(fields.started_at) ?? undefined,
    ended_at: numberOf(fields.ended_at) ?? undefined,
  });
}

function idIn(value: unknown): string | null {
  const id = textOf(value);
  return id === null ? null : truncateText(id, MAX_ID_LENGTH);
}

function boundedText(value: unknown): string | undefined {
  const text = textOf(value);
  return text === null ? undefined : truncateWithNote(text, MAX_TASK_TEXT);
}

const MAX_OPERATIONS = 1_000;

/**
 * Applies a JSON patch to a copy. Skips invalid operations.
 *
 * @see RFC 6902; pointers are RFC 6901
 */
export function applyPatch(value: unknown, patch: unknown): unknown {
  let root = structuredClone(value);
  for (const entry of listOf(patch).slice(0, MAX_OPERATIONS)) {
    if (!isObject(entry)) continue;
    const { op, path, from, value } = entry;
    const at = tokensOf(path);
    if (at === null) continue;
    if (op === 'add' || op === 'replace') root = put(root, at, structuredClone(value), op === 'add');
    else if (op === 'remove') root = take(root, at);
    else if (op === 'move' || op === 'copy') {
      const source = tokensOf(from);
      const found = source === null ? undefined : structuredClone(read(root, source));
      if (source === null || found === undefined) continue;
      if (op === 'move') root = take(root, source);
      root = put(root, at, found, true);
    }
  }
  return root;
}

function tokensOf(pointer: unknown): string[] | null {
  if (pointer === '') return [];
  if (typeof pointer !== 'string' || !pointer.startsWith('/')) return null;
  const tokens = pointer.slice(1).split('/');
  const plain = tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  return plain.includes('__proto__') ? null : plain;
}

function read(root: unknown, tokens: readonly string[]): unknown {
  let found = root;
  for (const token of tokens) {
    if (Array.isArray(found)) found = found[Number(token)];
    else found = isObject(found) && Object.hasOwn(found, token) ? found[token] : undefined;
  }
  return found;
}

function put(root: unknown, tokens: readonly string[], value: unknown, isAdded: boolean): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return value;
  const parent = read(root, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    const at = last === '-' ? parent.length : Number(last);
    if (!Number.isInteger(at) || at < 0 || at > parent.length) return root;
    parent.splice(at, isAdded ? 0 : 1, value);
  } else if (isObject(parent)) parent[last] = value;
  return root;
}

function take(root: unknown, tokens: readonly string[]): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return null;
  const parent = read(root, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    const at = Number(last);
    if (Number.isInteger(at) && at >= 0) parent.splice(at, 1);
  } else if (isObject(parent)) delete parent[last];
  return root;
}
