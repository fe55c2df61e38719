import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { TaskEnd as Status } from '@interlude/protocol/read-models';
import type { SessionWriter } from '../writer/session-writer';
import { TASK_ENDS, type TaskRun, taskUsage } from '../writer/task-runs';
import type { TaskEnd } from './turn-attribution';

/** `Command running in background with ID: b1. Output is being written to: /tmp/tasks/b1.output. You will be …` */
const OUTPUT_FILE = /\bID: ([\w-]{1,256})\. Output is being written to: (\/[^\n]{1,4000}?\.output)(?=\.|\s|$)/;
const LONGEST_LAUNCH = 8_192;
const UNREPORTED = 'The task is no longer running; the agent did not report the outcome.';

/**
 * Tracks background tasks. Hides foreground tasks (shown as tool calls) and ambient ones (housekeeping).
 *
 * Only `task:completed` ends a task; `task_updated` comes a moment earlier and lacks the summary.
 *
 * @see SDKTaskStartedMessage and its siblings, Agent SDK 0.3.329
 */
export class Tasks {
  readonly #writer: SessionWriter;
  /** Runs listed by `background_tasks_changed`; false once the list omits them. */
  readonly #isListed = new WeakMap<TaskRun, boolean>();
  /** Ends announced by `task_updated`; the notification may follow. */
  readonly #announced = new WeakMap<TaskRun, Status>();
  /** Runs that were listed once, but have not started. */
  readonly #unstarted = new Set<string>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** @returns false if the task is hidden */
  started(message: Fields): boolean {
    const ids = idsOf(message);
    if (ids === null) return false;
    const isHidden = message.is_backgrounded === false || message.ambient === true;
    const isShown = this.#writer.taskStarted(startOf(ids, message), isHidden ? 'hide' : 'start');
    const run = this.#writer.tasks.find(ids);
    if (this.#unstarted.delete(runKey(message)) && run !== undefined) this.#isListed.set(run, true);
    return isShown;
  }

  /** Reads the output file from the result of the launching call. */
  launched(toolUseId: string, result: string): void {
    const [, id, file] = OUTPUT_FILE.exec(result.slice(0, LONGEST_LAUNCH)) ?? [];
    // The CLI names the file after the task; any other file is command output.
    if (id === undefined || !file?.endsWith(`/${id}.output`)) return;
    const run = this.#writer.tasks.find({ task_id: id });
    if (run?.toolUseId !== toolUseId || this.#writer.tasks.stateOf(run.key) !== 'running') return;
    this.#writer.taskUpdated({ ...runIds(run), output_file: file });
  }

  progress(message: Fields): boolean {
    const run = this.#find(message);
    if (run === undefined) return false;
    return this.#writer.taskProgress({
      ...runIds(run),
      ...compact({
        // `description` is the current activity, not the task.
        summary: textOf(message.summary) ?? textOf(message.description) ?? undefined,
        usage: taskUsage(message.usage),
        last_tool_name: textOf(message.last_tool_name) ?? undefined,
      }),
    });
  }

  updated(message: Fields): boolean {
    const run = this.#find(message);
    if (run === undefined) return false;
    const patch = fieldsOf(message.patch);
    if (patch.is_backgrounded === true && !this.#isShown(run))
      return this.#writer.taskStarted(
        startOf(runIds(run), { ...message, task_type: run.type, description: patch.description }),
      );
    const ended = TASK_ENDS.get(patch.status);
    if (ended !== undefined) this.#announced.set(run, ended);
    const value = compact({
      status: ended === undefined ? (textOf(patch.status) ?? undefined) : undefined,
      description: textOf(patch.description) ?? undefined,
      error: textOf(patch.error) ?? undefined,
    });
    const isShown = this.#isShown(run);
    if (isShown && Object.keys(value).length > 0) this.#writer.taskUpdated({ ...runIds(run), ...value });
    return isShown;
  }

  /**
   * Handles a notification with a status.
   * @returns the end, for a turn to answer; null if known or hidden
   */
  notified(message: Fields): TaskEnd | null {
    const status = TASK_ENDS.get(message.status);
    const ids = idsOf(message);
    if (status === undefined || ids === null || message.ambient === true) return null;
    const before = this.#writer.tasks.find(ids);
    const type = before?.type ?? textOf(message.task_type);
    const summary = textOf(message.summary);
    const isNew = this.#writer.taskCompleted({
      ...(before === undefined ? ids : runIds(before)),
      status,
      ...compact({
        task_type: type ?? undefined,
        summary: summary ?? undefined,
        output_file: textOf(message.output_file) ?? undefined,
        exit_code: exitCode(type, status, summary) ?? undefined,
        error: textOf(message.reason) ?? undefined,
        usage: taskUsage(message.usage),
      }),
    });
    const run = this.#writer.tasks.find(ids);
    return isNew && run !== undefined ? endOf(run, status === 'stopped' && type !== 'local_agent') : null;
  }

  /**
   * Handles a notification without a status: an event of a running task, such as a monitor's line.
   * @returns the event, for a turn to answer; null if the task is not running or hidden
   */
  reported(message: Fields): TaskEnd | null {
    const run = this.#find(message);
    if (run === undefined) return null;
    const event = textOf(message.event);
    const summary = event ?? textOf(message.summary) ?? undefined;
    if (!this.#writer.taskProgress({ ...runIds(run), ...compact({ summary }) })) return null;
    if (event !== null) this.#writer.custom(CUSTOM.taskOutput, { ...runIds(run), text: `${event}\n` });
    return endOf(run, false);
  }

  /**
   * Reconciles with `background_tasks_changed`, which replaces the whole set. A task's notification precedes its
   * removal; if a task is listed twice without a start, its start was lost.
   */
  listed(message: Fields): void {
    const entries = listOf(message.tasks).map(fieldsOf);
    for (const run of this.#writer.tasks.running) {
      if (!this.#isListed.has(run) || entries.some((entry) => matchesRun(run, entry))) continue;
      this.#isListed.set(run, false);
      if (this.#announced.has(run)) this.#presume(run, UNREPORTED);
    }
    for (const entry of entries) {
      const run = this.#find(entry);
      if (run !== undefined) this.#isListed.set(run, true);
      else if (this.#unstarted.delete(runKey(entry))) this.started({ ...entry, is_backgrounded: true });
      else this.#unstarted.add(runKey(entry));
    }
    if (this.#unstarted.size > 256) this.#unstarted.clear();
  }

  /** Presumes lost all tasks that left the set without a notification: once a turn begins, none will follow. */
  settle(): void {
    for (const run of this.#writer.tasks.running) if (this.#isListed.get(run) === false) this.#presume(run, UNREPORTED);
  }

  /**
   * Presumes the tasks of an ended process lost.
   * @param how `ended by SIGKILL`; null if unknown
   * @param before only tasks started by then, epoch milliseconds
   */
  processEnded(how: string | null, before = Number.POSITIVE_INFINITY): void {
    const gone = `The agent’s process ended${how === null ? '' : ` (${how})`}`;
    for (const run of this.#writer.tasks.running)
      if (run.startedAt <= before) this.#presume(run, `${gone}; the outcome is unknown.`);
    this.#unstarted.clear();
  }

  lost(ids: readonly string[]): void {
    for (const run of this.#writer.tasks.running) if (ids.includes(run.id)) this.#presume(run, UNREPORTED);
  }

  endOfRun(runId: string): TaskEnd | null {
    const run = this.#writer.tasks.newest((one) => one.runId === runId);
    return run !== undefined && this.#isShown(run) ? endOf(run, false) : null;
  }

  ofToolUse(toolUseId: string): { id: string; runId: string | null } | null {
    return this.#writer.tasks.newest((run) => run.toolUseId === toolUseId) ?? null;
  }

  latestRun(taskId: string): string | null {
    return this.#writer.tasks.find({ task_id: taskId })?.runId ?? null;
  }

  #isShown({ key }: TaskRun): boolean {
    return this.#writer.tasks.stateOf(key) !== 'hidden';
  }

  /** @param reason error of a lost task */
  #presume(run: TaskRun, reason: string): void {
    const status = this.#announced.get(run) ?? 'lost';
    const exit_code = exitCode(run.type, status, null) ?? undefined;
    const error = status === 'lost' ? reason : undefined;
    const about = compact({ task_type: run.type ?? undefined, exit_code, error });
    this.#writer.taskCompleted({ ...runIds(run), status, ...about }, true);
  }

  #find(message: Fields): TaskRun | undefined {
    const ids = idsOf(message);
    return ids === null ? undefined : this.#writer.tasks.find(ids);
  }
}

type Ids = Pick<TaskEventValue, 'task_id' | 'run_id' | 'tool_use_id' | 'task_type'>;

function idsOf({ task_id, run_id, tool_use_id, task_type }: Fields): Ids | null {
  const id = textOf(task_id);
  if (id === null) return null;
  const ids = { task_id: id, run_id: textOf(run_id), tool_use_id: textOf(tool_use_id) ?? undefined };
  return compact({ ...ids, task_type: textOf(task_type) ?? undefined });
}

function runIds({ id, runId, toolUseId }: TaskRun): Ids {
  return compact({ task_id: id, run_id: runId, tool_use_id: toolUseId ?? undefined });
}

function startOf(ids: Ids, message: Fields): TaskEventValue {
  return compact({
    ...ids,
    description: textOf(message.description) ?? undefined,
    task_type: ids.task_type ?? textOf(message.task_type) ?? undefined,
    subagent_type: textOf(message.subagent_type) ?? undefined,
    parent_task_id: textOf(message.parent_task_id) ?? undefined,
  });
}

function endOf(run: TaskRun, quiet: boolean): TaskEnd {
  return { taskId: run.id, runId: run.runId, startedInRun: run.startedIn, quiet };
}

function runKey(message: Fields): string {
  return JSON.stringify([message.task_id, message.run_id ?? null]);
}

function matchesRun(run: TaskRun, entry: Fields): boolean {
  const runId = textOf(entry.run_id);
  return run.id === entry.task_id && (runId === null || run.runId === null || run.runId === runId);
}

/** `Background command "Poll" failed with exit code 3`, `… completed (exit code 0)`. Subagents have none. */
function exitCode(type: string | null, status: Status, summary: string | null): number | null {
  const isShell = type === null ? summary?.startsWith('Background command') : type === 'local_bash';
  if (!isShell) return null;
  const code = /exit code (\d+)\)?$/.exec(summary ?? '')?.[1];
  if (code !== undefined) return Number(code);
  return status === 'completed' ? 0 : null;
}
