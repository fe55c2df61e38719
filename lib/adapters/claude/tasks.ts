import { CUSTOM, type TaskEventValue } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@/lib/protocol/fields';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import type { Verdict } from '@/lib/protocol/lifecycle/grammar';
import type { TaskEnd as Status } from '@/lib/protocol/read-models';
import { custom, type Emit } from '../emit';
import type { TaskEnd } from './task-ends';
import { endOf, exitCode, isOf, keyOf, STATUSES, type TaskRun, usageOf } from './task-run';

/** `Command running in background with ID: b1. Output is being written to: /tmp/tasks/b1.output. You will be …` */
const OUTPUT_FILE = /\bID: ([\w-]{1,256})\. Output is being written to: (\/[^\n]{1,4000}?\.output)(?=\.|\s|$)/;
const LONGEST_LAUNCH = 8_192;
/** Most runs that go on, and most that have ended, whose state is known. */
const MAX_RUNS = 10_000;
const ENDS: ReadonlySet<Verdict> = new Set(['ends', 'corrects']);
const NOT_TOLD = 'It runs no longer, and the agent has not told how it ended.';

/**
 * Background tasks by (task_id, run_id): a resumed subagent keeps its id and gets another run. Messages without a run
 * are about the latest one.
 *
 * Only `task:completed` ends a task; `task_updated` comes a moment earlier and without the summary.
 *
 * @see SDKTaskStartedMessage and its siblings, Agent SDK 0.3.329
 */
export class Tasks {
  readonly #emit: Emit;
  readonly #currentRun: () => string | null;
  readonly #now: () => number;
  /** A foreground task is its tool call, and an ambient one is housekeeping: both are hidden. */
  readonly #runs = new Entities<'task', TaskRun>('task', { mostOpen: MAX_RUNS, mostEnded: MAX_RUNS });
  readonly #byId = new Map<string, TaskRun[]>();
  /** Entries of `background_tasks_changed` that were seen once, without a start of their task. */
  readonly #unstarted = new Set<string>();
  #count = 0;

  /**
   * @param currentRun the run of the open turn: the one that starts a task
   * @param now epoch milliseconds of the message that is read
   */
  constructor(emit: Emit, currentRun: () => string | null, now: () => number) {
    this.#emit = emit;
    this.#currentRun = currentRun;
    this.#now = now;
  }

  /** @returns whether the message became a task event: one about a task that is not shown does not */
  started(message: Fields): boolean {
    const known = this.#find(message);
    const again = known !== null && known.runId === textOf(message.run_id);
    if (again && (!this.#hasEnded(known) || known.runId !== null)) return this.#isShown(known);
    const isShown = message.is_backgrounded !== false && message.ambient !== true;
    const task = this.#add(message, isShown);
    if (task !== null && isShown) this.#tellStart(task, message);
    return task !== null && isShown;
  }

  /** The result of the call that started a shell says where its output goes. */
  launched(toolUseId: string, result: string): void {
    const [, id, file] = OUTPUT_FILE.exec(result.slice(0, LONGEST_LAUNCH)) ?? [];
    const task = this.#all().findLast((one) => one.toolUseId === toolUseId && one.id === id);
    if (file === undefined || task === undefined || !this.#isRunning(task)) return;
    // The CLI names the file after the task. Another one is somebody else's word.
    if (!file.endsWith(`/${id}.output`)) return;
    this.#emit(custom(CUSTOM.taskUpdated, this.#value(task, { output_file: file })));
  }

  progress(message: Fields): boolean {
    const task = this.#find(message);
    if (task === null || !this.#isRunning(task)) return false;
    const value = this.#value(task, {
      // `description` is what the task is doing right now, not what it is.
      summary: textOf(message.summary) ?? textOf(message.description) ?? undefined,
      usage: usageOf(message.usage),
      last_tool_name: textOf(message.last_tool_name) ?? undefined,
    });
    this.#emit(custom(CUSTOM.taskProgress, value));
    return true;
  }

  updated(message: Fields): boolean {
    const task = this.#find(message);
    if (task === null) return false;
    const patch = fieldsOf(message.patch);
    if (patch.is_backgrounded === true && this.#runs.stateOf(task.key) === 'hidden') {
      this.#runs.take(task.key, 'start');
      this.#tellStart(task, compact({ ...message, description: patch.description }));
      return true;
    }
    const ended = STATUSES.get(patch.status);
    if (ended !== undefined) task.patched = ended;
    const value = compact({
      status: ended === undefined ? (textOf(patch.status) ?? undefined) : undefined,
      description: textOf(patch.description) ?? undefined,
      error: textOf(patch.error) ?? undefined,
    });
    if (this.#isShown(task) && Object.keys(value).length > 0)
      this.#emit(custom(CUSTOM.taskUpdated, this.#value(task, value)));
    return this.#isShown(task);
  }

  /**
   * A notification: the task ended.
   * @returns the end, of which some turn will be told; null if it is already known, or the task is not shown
   */
  notified(message: Fields): TaskEnd | null {
    const status = STATUSES.get(message.status);
    const id = textOf(message.task_id);
    if (status === undefined || id === null || message.ambient === true) return null;
    const task = this.#find(message) ?? this.#add(message, true);
    if (task === null || !ENDS.has(this.#runs.take(task.key, 'end'))) return null;
    this.#tellEnd(task, status, message);
    return endOf(task, status === 'stopped' && task.type !== 'local_agent');
  }

  /**
   * A notification without a status: an event of a task that goes on, such as a line that a monitor waits for.
   * @returns the news, of which some turn will be told; null if the task is not running, or not shown
   */
  reported(message: Fields): TaskEnd | null {
    const task = this.#find(message);
    if (task === null || !this.#isRunning(task)) return null;
    const event = textOf(message.event);
    const summary = event ?? textOf(message.summary) ?? undefined;
    this.#emit(custom(CUSTOM.taskProgress, this.#value(task, { summary })));
    if (event !== null) this.#emit(custom(CUSTOM.taskOutput, { ...this.#value(task, {}), text: `${event}\n` }));
    return endOf(task, false);
  }

  /**
   * `background_tasks_changed` replaces the whole set.
   * The notification of a task that leaves it came before; a task listed twice without a start has lost its start.
   */
  listed(message: Fields): void {
    const entries = listOf(message.tasks).map(fieldsOf);
    for (const task of this.#all()) {
      if (task.listed === 'never' || entries.some((entry) => isOf(task, entry))) continue;
      task.listed = 'no longer';
      if (task.patched !== null) this.#infer(task, task.patched, NOT_TOLD);
    }
    for (const entry of entries) {
      const task = this.#find(entry);
      if (task !== null && isOf(task, entry)) task.listed = 'yes';
      else if (this.#unstarted.delete(keyOf(entry))) this.started({ ...entry, is_backgrounded: true });
      else this.#unstarted.add(keyOf(entry));
    }
    if (this.#unstarted.size > 256) this.#unstarted.clear();
  }

  /** A turn begins: a task that has left the set without a notification will not get one any more. */
  settle(): void {
    for (const task of this.#all())
      if (task.listed === 'no longer') this.#infer(task, task.patched ?? 'lost', NOT_TOLD);
  }

  /**
   * The process is gone: nothing will report how its tasks ended.
   * @param how `ended by SIGKILL`; null if that is not known
   * @param before only tasks that started by then, epoch milliseconds
   */
  processEnded(how: string | null, before = Number.POSITIVE_INFINITY): void {
    const why = `The agent’s process has gone${how === null ? '' : ` (${how})`}, and nothing told how this ended.`;
    for (const task of this.#all()) if (task.startedAt <= before) this.#infer(task, task.patched ?? 'lost', why);
    this.#unstarted.clear();
  }

  /** Tasks that the agent no longer lists, without a report of how they ended. */
  lost(ids: readonly string[]): void {
    for (const task of this.#all()) if (ids.includes(task.id)) this.#infer(task, task.patched ?? 'lost', NOT_TOLD);
  }

  endOfRun(runId: string): TaskEnd | null {
    for (const task of this.#all()) if (task.runId === runId) return this.#isShown(task) ? endOf(task, false) : null;
    return null;
  }

  /** The subagent behind a tool call: its task and run, if the task is known. */
  ofToolUse(toolUseId: string): { id: string; runId: string | null } | null {
    return this.#all().findLast((task) => task.toolUseId === toolUseId) ?? null;
  }

  /** The newest run of a task. */
  latestRun(taskId: string): string | null {
    return this.#byId.get(taskId)?.at(-1)?.runId ?? null;
  }

  /** @param why it counts as lost */
  #infer(task: TaskRun, status: Status, why: string): void {
    if (this.#runs.take(task.key, 'presume') === 'ends')
      this.#tellEnd(task, status, status === 'lost' ? { reason: why } : {});
  }

  #isRunning({ key }: TaskRun): boolean {
    return this.#runs.stateOf(key) === 'running';
  }

  #isShown({ key }: TaskRun): boolean {
    return this.#runs.stateOf(key) !== 'hidden';
  }

  #hasEnded({ key }: TaskRun): boolean {
    return !['hidden', 'running'].includes(this.#runs.stateOf(key));
  }

  #tellStart(task: TaskRun, message: Fields): void {
    const value = this.#value(task, {
      description: textOf(message.description) ?? undefined,
      task_type: task.type ?? undefined,
      subagent_type: textOf(message.subagent_type) ?? undefined,
      parent_task_id: textOf(message.parent_task_id) ?? undefined,
      status: 'running',
    });
    this.#emit(custom(CUSTOM.taskStarted, value));
  }

  #tellEnd(task: TaskRun, status: Status, message: Fields): void {
    const summary = textOf(message.summary);
    const value = this.#value(task, {
      task_type: task.type ?? undefined,
      status,
      summary: summary ?? undefined,
      output_file: textOf(message.output_file) ?? undefined,
      exit_code: exitCode(task, status, summary) ?? undefined,
      error: textOf(message.reason) ?? undefined,
      usage: usageOf(message.usage),
    });
    this.#emit(custom(CUSTOM.taskCompleted, value));
  }

  #value(task: TaskRun, value: Omit<TaskEventValue, 'task_id'>): TaskEventValue {
    return compact({ task_id: task.id, run_id: task.runId, tool_use_id: task.toolUseId, ...value });
  }

  #find(message: Fields): TaskRun | null {
    const runs = this.#byId.get(textOf(message.task_id) ?? '') ?? [];
    const runId = textOf(message.run_id);
    const nameless = runs.find((run) => run.runId === null && !this.#hasEnded(run));
    const task = runId === null ? runs.at(-1) : (runs.find((run) => run.runId === runId) ?? nameless);
    if (task === undefined) return null;
    task.runId ??= runId;
    task.toolUseId ??= textOf(message.tool_use_id);
    task.type ??= textOf(message.task_type);
    return task;
  }

  #add(message: Fields, shown: boolean): TaskRun | null {
    const id = textOf(message.task_id);
    if (id === null) return null;
    const key = `${id} ${this.#count++}`;
    const task: TaskRun = {
      key,
      id,
      runId: textOf(message.run_id),
      toolUseId: textOf(message.tool_use_id),
      type: textOf(message.task_type),
      patched: null,
      listed: this.#unstarted.delete(keyOf(message)) ? 'yes' : 'never',
      startedInRun: this.#currentRun(),
      startedAt: this.#now(),
    };
    this.#runs.take(key, shown ? 'start' : 'hide', task);
    this.#byId.set(id, [...(this.#byId.get(id) ?? []), task]);
    return task;
  }

  #all(): TaskRun[] {
    return [...this.#byId.values()].flat();
  }
}
