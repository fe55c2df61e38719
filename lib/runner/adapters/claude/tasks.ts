import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { TaskEnd as Status } from '@interlude/protocol/read-models';
import type { SessionWriter } from '../writer/session-writer';
import type { TaskRun } from '../writer/task-runs';
import type { TaskEnd } from './task-ends';
import { endOf, exitCode, idsOf, isOf, keyOf, runIds, STATUSES, startOf, usageOf } from './task-fields';

/** `Command running in background with ID: b1. Output is being written to: /tmp/tasks/b1.output. You will be …` */
const OUTPUT_FILE = /\bID: ([\w-]{1,256})\. Output is being written to: (\/[^\n]{1,4000}?\.output)(?=\.|\s|$)/;
const LONGEST_LAUNCH = 8_192;
const NOT_TOLD = 'It runs no longer, and the agent has not told how it ended.';

/**
 * Reads Claude's messages about background tasks. A foreground task is its tool call, and an ambient one is housekeeping:
 * both are hidden.
 *
 * Only `task:completed` ends a task; `task_updated` comes a moment earlier and without the summary.
 *
 * @see SDKTaskStartedMessage and its siblings, Agent SDK 0.3.329
 */
export class Tasks {
  readonly #writer: SessionWriter;
  /** Runs that `background_tasks_changed` has listed, and whether the last one did. */
  readonly #isListed = new WeakMap<TaskRun, boolean>();
  /** Ends that `task_updated` announced. The notification of one may still come. */
  readonly #announced = new WeakMap<TaskRun, Status>();
  /** Entries of `background_tasks_changed` that were seen once, without a start of their task. */
  readonly #unstarted = new Set<string>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** @returns whether the message became a task event: one about a task that is not shown does not */
  started(message: Fields): boolean {
    const ids = idsOf(message);
    if (ids === null) return false;
    const isHidden = message.is_backgrounded === false || message.ambient === true;
    const isShown = this.#writer.taskStarted(startOf(ids, message), isHidden ? 'hide' : 'start');
    const run = this.#writer.tasks.find(ids);
    if (this.#unstarted.delete(keyOf(message)) && run !== undefined) this.#isListed.set(run, true);
    return isShown;
  }

  /** The result of the call that started a shell says where its output goes. */
  launched(toolUseId: string, result: string): void {
    const [, id, file] = OUTPUT_FILE.exec(result.slice(0, LONGEST_LAUNCH)) ?? [];
    // The CLI names the file after the task. Any other file is the output of a command.
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
        // `description` is what the task is doing right now, not what it is.
        summary: textOf(message.summary) ?? textOf(message.description) ?? undefined,
        usage: usageOf(message.usage),
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
    const ended = STATUSES.get(patch.status);
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
   * A notification: the task ended.
   * @returns the end, which some turn will answer; null if it is already known, or the task is not shown
   */
  notified(message: Fields): TaskEnd | null {
    const status = STATUSES.get(message.status);
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
        usage: usageOf(message.usage),
      }),
    });
    const run = this.#writer.tasks.find(ids);
    return isNew && run !== undefined ? endOf(run, status === 'stopped' && type !== 'local_agent') : null;
  }

  /**
   * A notification without a status: an event of a task that goes on, such as a line that a monitor waits for.
   * @returns the event, which some turn will answer; null if the task is not running, or not shown
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
   * `background_tasks_changed` replaces the whole set.
   * The notification of a task that leaves it came before; a task listed twice without a start has lost its start.
   */
  listed(message: Fields): void {
    const entries = listOf(message.tasks).map(fieldsOf);
    for (const run of this.#writer.tasks.running) {
      if (!this.#isListed.has(run) || entries.some((entry) => isOf(run, entry))) continue;
      this.#isListed.set(run, false);
      if (this.#announced.has(run)) this.#presume(run, NOT_TOLD);
    }
    for (const entry of entries) {
      const run = this.#find(entry);
      if (run !== undefined) this.#isListed.set(run, true);
      else if (this.#unstarted.delete(keyOf(entry))) this.started({ ...entry, is_backgrounded: true });
      else this.#unstarted.add(keyOf(entry));
    }
    if (this.#unstarted.size > 256) this.#unstarted.clear();
  }

  /** A turn begins: a task that has left the set without a notification will not get one any more. */
  settle(): void {
    for (const run of this.#writer.tasks.running) if (this.#isListed.get(run) === false) this.#presume(run, NOT_TOLD);
  }

  /**
   * The process is gone: nothing will report how its tasks ended.
   * @param how `ended by SIGKILL`; null if that is not known
   * @param before only tasks that started by then, epoch milliseconds
   */
  processEnded(how: string | null, before = Number.POSITIVE_INFINITY): void {
    const gone = `The agent’s process has gone${how === null ? '' : ` (${how})`}`;
    for (const run of this.#writer.tasks.running)
      if (run.startedAt <= before) this.#presume(run, `${gone}, and nothing told how this ended.`);
    this.#unstarted.clear();
  }

  /** Tasks that the agent no longer lists, without a report of how they ended. */
  lost(ids: readonly string[]): void {
    for (const run of this.#writer.tasks.running) if (ids.includes(run.id)) this.#presume(run, NOT_TOLD);
  }

  endOfRun(runId: string): TaskEnd | null {
    const run = this.#writer.tasks.newest((one) => one.runId === runId);
    return run !== undefined && this.#isShown(run) ? endOf(run, false) : null;
  }

  /** The subagent behind a tool call: its task and run, if the task is known. */
  ofToolUse(toolUseId: string): { id: string; runId: string | null } | null {
    return this.#writer.tasks.newest((run) => run.toolUseId === toolUseId) ?? null;
  }

  /** The newest run of a task. */
  latestRun(taskId: string): string | null {
    return this.#writer.tasks.find({ task_id: taskId })?.runId ?? null;
  }

  #isShown({ key }: TaskRun): boolean {
    return this.#writer.tasks.stateOf(key) !== 'hidden';
  }

  /** @param why it counts as lost, unless its end was announced */
  #presume(run: TaskRun, why: string): void {
    const status = this.#announced.get(run) ?? 'lost';
    const exit_code = exitCode(run.type, status, null) ?? undefined;
    const about = compact({ task_type: run.type ?? undefined, exit_code, error: status === 'lost' ? why : undefined });
    this.#writer.taskCompleted({ ...runIds(run), status, ...about }, true);
  }

  #find(message: Fields): TaskRun | undefined {
    const ids = idsOf(message);
    return ids === null ? undefined : this.#writer.tasks.find(ids);
  }
}
