import type { TaskEventValue, TurnTrigger } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';
import { applyPatch } from './json-patch';
import { isTooDeep } from './passed-on';
import { endIn, type TaskEnd, taskValueOf, words } from './task-words';

/** Most activities that are kept for what is patched later, and how long one may be as JSON. */
const MAX_ACTIVITIES = 128;
const MAX_ACTIVITY = 256 * 1024;
/** Most tasks whose last progress is known, and most that wait for the turn they woke. */
const MAX_NOTED = 256;

const MASTRA_TASK = 'mastra-background-task';

/**
 * Work that outlives its call, in the three ways in which AG-UI servers tell of it: CUSTOM `task:*` (Ambient's runner,
 * Interlude), activities (Mastra), and a list that can be asked for.
 *
 * @see `@ag-ui/mastra` 1.1.2 for the content of its activities
 */
export class BackgroundTasks {
  readonly #writer: SessionWriter;
  readonly #isHere: boolean;
  readonly #activities = new Map<string, unknown>();
  readonly #progress = new Map<string, string>();
  /** Their ends were told: heard on another stream, or again, they wake nobody. */
  readonly #over = new Map<string, true>();
  /** Ended before this process: one that starts inside a turn is a new task under a reused name. */
  readonly #before: Set<string>;
  /** Ended since the last turn began: outside of any, and in it. */
  #endedOutside: string[] = [];
  #endedInside: string[] = [];

  constructor(writer: SessionWriter, isHere: boolean, ended: readonly string[] = []) {
    this.#writer = writer;
    this.#isHere = isHere;
    this.#before = new Set(ended);
    for (const id of ended) this.#over.set(id, true);
  }

  get ended(): string[] {
    return [...this.#over.keys()];
  }

  /** A turn of a person begins: what ended before is put before the agent there. */
  userTurnBegins(): void {
    this.#endedInside = this.#endedOutside;
    this.#endedOutside = [];
  }

  /** What woke a turn that begins now: the tasks that ended just before it. */
  wokeNow(): TurnTrigger {
    const taskIds = this.#endedOutside.length > 0 ? this.#endedOutside : this.#endedInside;
    this.#endedOutside = [];
    this.#endedInside = [];
    return taskIds.length === 0 ? { kind: 'unknown', taskIds } : { kind: 'task', taskIds };
  }

  /** @returns whether it was an event about a task */
  readCustom(name: string | null, said: unknown): boolean {
    if (name === null || !name.startsWith('task:')) return false;
    const value = taskValueOf(said, this.#isHere);
    if (value === null) return false;
    switch (name) {
      case CUSTOM.taskStarted:
        this.#begins(value);
        return true;
      case CUSTOM.taskProgress:
        this.#goesOn(value, 'progress');
        return true;
      case CUSTOM.taskUpdated:
        this.#goesOn(value, 'updated');
        return true;
      case CUSTOM.taskCompleted:
        this.#ended(value, endIn(value.status) ?? (value.error ? 'failed' : 'completed'));
        return true;
      default:
        return false;
    }
  }

  /** @returns whether it was an activity about a task */
  readActivity({ type, messageId, activityType, content, patch }: Fields): boolean {
    const id = textOf(messageId);
    if (activityType !== MASTRA_TASK || id === null) return false;
    const now = type === 'ACTIVITY_DELTA' ? applyPatch(this.#activities.get(id) ?? {}, patch) : content;
    if (!isObject(now) || isTooDeep(now) || JSON.stringify(now).length > MAX_ACTIVITY) return true;
    remember(this.#activities, id, now, MAX_ACTIVITIES);
    this.#mastra(now, id);
    return true;
  }

  /** A subagent of a run is a task of it: what it says goes under its name. */
  readSubagent({ type, subagentRunId, name, description, parentToolCallId, message, outcome }: Fields): boolean {
    const value = taskValueOf({ task_id: subagentRunId }, this.#isHere);
    if (value === null) return false;
    if (type === 'SUBAGENT_STARTED') {
      const about = { description: words(description) ?? words(name), subagent_type: words(name) };
      const call = textOf(parentToolCallId);
      this.#writer.taskStarted({ ...value, ...compact(about), task_type: 'local_agent', tool_use_id: call });
    } else if (type === 'SUBAGENT_ERROR') {
      this.#writer.taskCompleted({ ...value, status: 'failed', error: words(message) ?? null });
    } else if (type === 'SUBAGENT_FINISHED') {
      if (fieldsOf(outcome).type === 'suspended') this.#goesOn({ ...value, status: 'suspended' }, 'updated');
      else this.#writer.taskCompleted({ ...value, status: 'completed' });
    } else return false;
    return true;
  }

  /**
   * What the server lists of its tasks, those that have ended among them.
   *
   * @param about the tasks that were open when it was asked for: what began since is not in it
   */
  readList(body: unknown, about: readonly string[]): void {
    const list = Array.isArray(body) ? body : fieldsOf(body).tasks;
    if (!Array.isArray(list)) return;
    const open = new Set(about);
    for (const entry of listOf(list)) {
      const value = taskValueOf(entry, this.#isHere);
      if (value === null) continue;
      const end = endIn(value.status);
      if (end === null) {
        if (!open.has(value.task_id)) this.#begins(value);
      } else if (open.has(value.task_id)) this.#ended(value, end);
      open.delete(value.task_id);
    }
    for (const id of open) {
      this.#writer.taskCompleted({ task_id: id, status: 'lost', error: 'The server does not list it any more.' });
    }
  }

  /** Nothing is left that could tell how these end. */
  lose(about: readonly string[]): void {
    const error = 'The server tells neither what runs nor what happens between turns.';
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
      ...compact({ description: words(toolName), tool_use_id: textOf(toolCallId) }),
      ...(took === null ? {} : { usage: { duration_ms: took } }),
    };
    const end = endIn(status);
    if (end !== null) {
      const summary = end === 'completed' ? wordsOf(result) : undefined;
      this.#ended({ ...value, ...compact({ summary, error: wordsOf(error) }), status: end }, end);
    } else if (this.#writer.runs(id)) {
      const last = wordsOf(listOf(content.outputs).at(-1));
      this.#goesOn({ ...value, ...compact({ summary: last, status: words(status) }) }, 'progress');
    } else this.#begins({ ...value, task_type: MASTRA_TASK });
  }

  #begins(value: TaskEventValue): void {
    if (this.#writer.turn !== null && this.#before.delete(value.task_id)) this.#over.delete(value.task_id);
    if (this.#over.has(value.task_id)) return;
    if (this.#writer.runs(value.task_id)) this.#goesOn(value, 'updated');
    else this.#writer.taskStarted(value);
  }

  #goesOn(value: TaskEventValue, how: 'progress' | 'updated'): void {
    const said = JSON.stringify(value);
    if (this.#over.has(value.task_id)) return;
    if (this.#progress.get(value.task_id) === said) return;
    remember(this.#progress, value.task_id, said, MAX_NOTED);
    if (how === 'progress') this.#writer.taskProgress(value);
    else this.#writer.taskUpdated(value);
  }

  #ended(value: TaskEventValue, status: TaskEnd): void {
    if (this.#over.has(value.task_id)) return;
    remember(this.#over, value.task_id, true, MAX_NOTED);
    this.#progress.delete(value.task_id);
    this.#writer.taskCompleted({ ...value, status });
    const ended = this.#writer.turn === null ? this.#endedOutside : this.#endedInside;
    if (!ended.includes(value.task_id) && ended.length < MAX_NOTED) ended.push(value.task_id);
  }
}

function wordsOf(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : (words(value) ?? words(JSON.stringify(value)));
}
