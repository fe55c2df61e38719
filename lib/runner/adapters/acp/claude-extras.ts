import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../wire';
import type { SessionWriter, TurnEnd } from '../writer/session-writer';
import { TASK_ENDS, taskUsage } from '../writer/task-runs';
import { ASYNC_TASKS } from './agent-profiles';
import { type PromptTurns, SETTLE_MS } from './prompt-turns';

/** Requested with `session/new` as `_meta.claudeCode.emitRawSDKMessages`; other types only repeat the updates. */
export const RAW_MESSAGES = [
  { type: 'system', subtype: 'task_started' },
  { type: 'system', subtype: 'task_progress' },
  { type: 'system', subtype: 'task_updated' },
  { type: 'system', subtype: 'task_notification' },
  { type: 'system', subtype: 'background_tasks_changed' },
  { type: 'command_lifecycle' },
  { type: 'result' },
] as const;

/** Client capabilities that enable task updates and let a turn end at its result while subagents still run. */
export const AIR_CAPABILITIES = {
  jetbrains: { air: { version: 1, capabilities: [ASYNC_TASKS, 'backgroundSubagents'] } },
};

/** Method that stops a task other than a subagent. */
export const STOP_TASK = '_session/async_task/stop';

type TaskEnd = Omit<Parameters<SessionWriter['taskCompleted']>[0], 'task_id'>;

const OWN_TURN = 'autonomous-turn-';
const MAX_KNOWN = 1_000;

/**
 * Translates extensions of claude-agent-acp beyond ACP v1, for clients that opt in. Texts and calls come only as
 * session updates; the extensions add the lifecycle of tasks, the bounds of between-run turns, and the messages that a
 * turn processed.
 *
 * - `_claude/sdkMessage`: raw Agent SDK messages of the types in RAW_MESSAGES.
 * - `async_task_spawned`, `…_progress`, `…_state_update`: the same tasks again (deduplicated by id), their output
 *   files, and a task `autonomous-turn-…` around each between-run turn.
 *
 * codex-acp reports its tasks with the same updates.
 *
 * @see @agentclientprotocol/claude-agent-acp 0.101.0, codex-acp 2.6.0; @anthropic-ai/claude-agent-sdk 0.3.318
 */
export class ClaudeExtras {
  readonly #writer: SessionWriter;
  readonly #turns: PromptTurns;
  /** Tasks by their starting call, whose nested calls are the subagent's. */
  readonly #byCall = new Map<string, string>();
  /** Tasks by run id, as in origins. */
  readonly #byRun = new Map<string, string>();
  /** Foreground tasks, shown only once moved to the background. */
  readonly #foreground = new Map<string, Fields>();
  readonly #foregroundSubagents = new Set<string>();
  readonly #files = new Map<string, string>();
  readonly #patchedStatus = new Map<string, string>();
  /** Ends reported by an update, held for the SDK message or the call's result, which add summary or exit code. */
  readonly #unconfirmed = new Map<string, { at: number; end: TaskEnd }>();
  /** True if the agent sends raw SDK messages, which hold more about task ends. */
  #isRaw = false;
  /** Task ends since the last between-run turn, in order. */
  #ended: string[] = [];

  constructor(writer: SessionWriter, turns: PromptTurns) {
    this.#writer = writer;
    this.#turns = turns;
  }

  /** Trigger of a turn beginning now, as far as known. */
  get cause(): TurnTrigger {
    return this.#trigger({});
  }

  /** Task of a subagent's call; the call id if the task is unknown. */
  taskOfCall(callId: string): string {
    return this.#byCall.get(callId) ?? callId;
  }

  /** Records a task reported with the result of its starting call. */
  started(callId: string, taskId: string): void {
    setBounded(this.#byCall, callId, taskId, MAX_KNOWN);
  }

  /** Handles `params.message` of `_claude/sdkMessage`. */
  message(message: Fields, now: number): void {
    const { type, subtype } = message;
    if (type === 'command_lifecycle') this.#turns.lifecycle(textOf(message.command_uuid) ?? '', message.state, now);
    else if (type === 'result') this.#result(message, now);
    else if (type === 'system' && subtype === 'task_started') this.#taskStarted(message);
    else if (type === 'system' && subtype === 'task_progress') this.#taskProgress(message);
    else if (type === 'system' && subtype === 'task_updated') this.#taskUpdated(message);
    else if (type === 'system' && subtype === 'task_notification') this.#taskEnded(message);
    else if (type === 'system' && subtype === 'background_tasks_changed') this.#reconcile(message);
  }

  /** Records a task's output file, which several messages report. */
  outputFile(id: string, file: string): void {
    if (!this.#writer.isRunning(id) || this.#files.get(id) === file) return;
    setBounded(this.#files, id, file, MAX_KNOWN);
    this.#writer.taskUpdated({ task_id: id, output_file: file });
  }

  /** Handles an update about a task. */
  asyncTask(update: Fields, now: number): void {
    const id = textOf(update.asyncTaskId);
    if (id === null) return;
    if (id.startsWith(OWN_TURN)) {
      this.#ownTurn(update, now);
      return;
    }
    const { sessionUpdate, name, description, toolCallId, outputFilePath, state, error } = update;
    const about = { task_id: id, output_file: textOf(outputFilePath) ?? undefined };
    if (sessionUpdate === 'async_task_spawned') {
      const callId = textOf(toolCallId);
      if (callId !== null) setBounded(this.#byCall, callId, id, MAX_KNOWN);
      if (this.#writer.isRunning(id)) return;
      const text = textOf(description) ?? textOf(name) ?? undefined;
      this.#writer.taskStarted(
        compact({ ...about, tool_use_id: callId, description: text, task_type: textOf(update.taskType) ?? undefined }),
      );
    } else if (sessionUpdate === 'async_task_progress') {
      if (about.output_file !== undefined) this.outputFile(id, about.output_file);
    } else if (isEnd(state) && this.#writer.isRunning(id)) {
      const end = { status: state, error: textOf(error), summary: textOf(update.summary) ?? undefined };
      // Only the call could still report more, and only on failure.
      if (state === 'stopped' && !this.#isRaw) this.#end(id, end);
      else setBounded(this.#unconfirmed, id, { at: now, end }, MAX_KNOWN);
    }
  }

  /** Time at which the oldest unconfirmed end counts anyway, because the process inside the adapter may have died. */
  get dueAt(): number | null {
    const [next] = this.#unconfirmed.values();
    return next === undefined ? null : next.at + SETTLE_MS;
  }

  elapsed(now: number): void {
    for (const [id, { at, end }] of this.#unconfirmed) if (at + SETTLE_MS <= now) this.#end(id, end);
  }

  /** Handles the end of a call, which also ends its foreground subagent. */
  callEnded(callId: string, isError: boolean): void {
    const id = this.#byCall.get(callId);
    if (id === undefined || !this.#foregroundSubagents.delete(id)) return;
    if (this.#writer.isRunning(id))
      this.#writer.taskCompleted({ task_id: id, status: isError ? 'failed' : 'completed' });
  }

  /** Handles `usage_update` with an origin: a turn's result without text. */
  origin(origin: Fields, now: number): void {
    if (origin.kind === 'human') {
      this.#turns.resulted({ kind: 'success' }, now);
      return;
    }
    const [only, ...others] = this.#writer.openTasks;
    if (origin.kind === 'task-notification' && !this.#isRaw && only !== undefined && others.length === 0) {
      const error = 'It has ended, but plain ACP does not report the outcome.';
      this.#end(only, { status: 'lost', error });
    }
    this.#turns.betweenRunEnded({ kind: 'success' }, this.#trigger(origin));
    this.#ended = [];
  }

  forget(): void {
    this.#ended = [];
    this.#foreground.clear();
    this.#foregroundSubagents.clear();
    this.#patchedStatus.clear();
    this.#unconfirmed.clear();
  }

  #ownTurn({ sessionUpdate, state, description }: Fields, now: number): void {
    if (sessionUpdate === 'async_task_spawned') {
      const isTimer = /scheduled|wakeup/i.test(textOf(description) ?? '') && this.#ended.length === 0;
      this.#turns.betweenRunStarted(isTimer ? { kind: 'timer', taskIds: [] } : this.#trigger({}), now);
      this.#ended = [];
    } else if (isEnd(state)) this.#turns.betweenRunEnded(ENDS[state]);
  }

  #trigger({ kind, runId }: Fields): TurnTrigger {
    const run = textOf(runId);
    const named = run === null ? undefined : this.#byRun.get(run);
    const taskIds = [...new Set([...this.#ended, ...(named === undefined ? [] : [named])])];
    if (taskIds.length > 0 || kind === 'task-notification') return { kind: 'task', taskIds };
    return { kind: 'unknown', taskIds: [] };
  }

  #result({ origin, is_error, result, subtype, terminal_reason }: Fields, now: number): void {
    const from = fieldsOf(origin);
    const isAborted = textOf(terminal_reason)?.startsWith('aborted') === true;
    const message = textOf(result) ?? textOf(subtype) ?? 'The turn failed.';
    const end: TurnEnd = isAborted
      ? { kind: 'cancelled' }
      : is_error === true
        ? { kind: 'failed', message, code: textOf(subtype) ?? 'error' }
        : { kind: 'success' };
    if (from.kind === undefined || from.kind === 'human') this.#turns.resulted(end, now);
    else this.#turns.betweenRunEnded(end, this.#hasNamed(from) ? this.#trigger(from) : null);
  }

  #hasNamed({ runId }: Fields): boolean {
    return typeof runId === 'string' && this.#byRun.has(runId);
  }

  #taskStarted(message: Fields): void {
    this.#isRaw = true;
    const id = textOf(message.task_id);
    if (id === null) return;
    const [callId, runId] = [textOf(message.tool_use_id), textOf(message.run_id)];
    if (callId !== null) setBounded(this.#byCall, callId, id, MAX_KNOWN);
    if (runId !== null) setBounded(this.#byRun, runId, id, MAX_KNOWN);
    // A foreground command is shown as its tool call; a foreground subagent's output needs a task.
    if (message.is_backgrounded === false && message.task_type !== 'local_agent') {
      setBounded(this.#foreground, id, message, MAX_KNOWN);
      return;
    }
    if (message.is_backgrounded === false) this.#foregroundSubagents.add(id);
    this.#start(id, message);
  }

  #start(id: string, message: Fields): void {
    this.#foreground.delete(id);
    this.#writer.taskStarted(
      compact({
        task_id: id,
        run_id: textOf(message.run_id),
        tool_use_id: textOf(message.tool_use_id),
        description: textOf(message.description) ?? undefined,
        task_type: textOf(message.task_type) ?? undefined,
        subagent_type: textOf(message.subagent_type) ?? undefined,
        parent_task_id: textOf(message.parent_task_id),
      }),
    );
  }

  #taskProgress({ task_id, run_id, description, last_tool_name, summary, usage }: Fields): void {
    const id = textOf(task_id);
    if (id === null || !this.#writer.isRunning(id)) return;
    this.#writer.taskProgress(
      compact({
        task_id: id,
        run_id: textOf(run_id),
        description: textOf(description) ?? undefined,
        summary: textOf(summary) ?? undefined,
        last_tool_name: textOf(last_tool_name) ?? undefined,
        usage: taskUsage(usage),
      }),
    );
  }

  #taskUpdated({ task_id, patch }: Fields): void {
    const id = textOf(task_id);
    if (id === null) return;
    const { status, is_backgrounded } = fieldsOf(patch);
    const waiting = this.#foreground.get(id);
    if (is_backgrounded === true) this.#foregroundSubagents.delete(id);
    if (is_backgrounded === true && waiting !== undefined) this.#start(id, waiting);
    // The notification that follows has the details.
    if (typeof status === 'string' && TASK_ENDS.has(status)) setBounded(this.#patchedStatus, id, status, MAX_KNOWN);
  }

  #taskEnded({ task_id, status, summary, output_file, usage }: Fields): void {
    const id = textOf(task_id);
    if (id === null) return;
    this.#foreground.delete(id);
    if (!this.#writer.isRunning(id)) return;
    const text = textOf(summary) ?? undefined;
    const exitCode = /exit code (\d+)/.exec(text ?? '')?.[1];
    this.#end(id, {
      status: TASK_ENDS.get(status) ?? 'completed',
      summary: text,
      output_file: textOf(output_file),
      usage: taskUsage(usage),
      exit_code: exitCode === undefined ? null : Number(exitCode),
    });
  }

  #end(id: string, end: TaskEnd): void {
    this.#patchedStatus.delete(id);
    this.#unconfirmed.delete(id);
    this.#foregroundSubagents.delete(id);
    this.#writer.taskCompleted(compact({ task_id: id, ...end }));
    // A task that a person stopped does not start a turn.
    if (end.status !== 'stopped') this.#ended = [...this.#ended, id].slice(-MAX_KNOWN);
  }

  /** Reconciles with the full list of running tasks: a missing task whose status is known has ended. */
  #reconcile({ tasks }: Fields): void {
    if (!Array.isArray(tasks)) return;
    const running = new Set(listOf(tasks).map((task) => textOf(fieldsOf(task).task_id)));
    for (const id of this.#writer.openTasks) {
      const status = this.#patchedStatus.get(id);
      if (running.has(id) || status === undefined) continue;
      this.#end(id, { status: TASK_ENDS.get(status) ?? 'completed' });
    }
  }
}

const ENDS: Record<'completed' | 'stopped' | 'failed', TurnEnd> = {
  completed: { kind: 'success' },
  stopped: { kind: 'cancelled' },
  failed: { kind: 'failed', message: 'The turn failed.' },
};

function isEnd(state: unknown): state is keyof typeof ENDS {
  return typeof state === 'string' && Object.hasOwn(ENDS, state);
}
