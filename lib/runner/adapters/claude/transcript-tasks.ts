import {
  compact,
  type Fields,
  fieldsOf,
  isObject,
  listOf,
  numberOf,
  parseJson,
  textOf,
} from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { remember } from '../remember';
import { type LaunchedWork, launchIn, TASK_IDS } from './launch-in';
import type { Notification } from './notifications-in';
import { contentText } from './stand-in';
import type { TaskRef } from './task-ends';
import { STATUSES } from './task-fields';

/** Most tool calls whose input is remembered until their result says that they go on as a task. */
const MAX_CALLS = 512;
/** Most ends that are remembered, to recognise them when they are reported again. */
const MAX_TOLD = 1_024;
/** Most scheduled wake-ups that are remembered until they fire. */
const MAX_TIMERS = 128;

/** Longest text of a call's input that may be the id of a task. UTF-16 units. */
const MAX_ID = 256;
/** A monitor reports its own expiry this early at most, in milliseconds. */
const EXPIRY_MS = 1_000;

interface Launch extends LaunchedWork {
  runId?: string | undefined;
  parentId: string | null;
  /** Epoch milliseconds. */
  startedAt: number;
  /** When a monitor gives up, epoch milliseconds. */
  expiresAt?: number | undefined;
}

/** A wake-up that the agent scheduled. */
export interface Timer {
  reason: string | null;
  /** Epoch milliseconds. */
  setAt: number;
}

/**
 * Background tasks as a transcript has them: the result of a tool call names work that goes on in the background, and a
 * notification or the result of a later call says that it ended. Each becomes the SDK's own message.
 *
 * A transcript names no runs. A resumed subagent ends a second time, so that end gets a run of its own.
 */
export class TranscriptTasks {
  readonly #calls = new Map<string, Fields>();
  readonly #tasks = new Entities<'task', Launch>('task', { mostOpen: Number.POSITIVE_INFINITY, mostEnded: MAX_TOLD });
  readonly #runs = new Map<string, number>();
  /** Descriptions of subagents, by id: a message that starts one again does not repeat it. */
  readonly #described = new Map<string, string>();
  /** Ends by their notification's text. */
  readonly #told = new Map<string, TaskRef>();
  /** Tasks that the agent stopped itself; a notification about the same end may follow. */
  readonly #stopped = new Map<string, TaskRef>();
  readonly #subagents = new Set<string>();
  /** Wake-ups by the prompt that they bring; and those with an id by that, too. */
  readonly #timers = new Map<string, Timer>();
  #fired: string | null = null;

  get subagents(): string[] {
    return [...this.#subagents];
  }

  called(toolUseId: string, input: Fields): void {
    const { description, subagent_type, prompt, run_in_background, reason, cron } = input;
    const texts = Object.values(input).filter((value) => textOf(value) !== null && `${value}`.length <= MAX_ID);
    const call = compact({ description, subagent_type, prompt, run_in_background, reason, cron, texts });
    remember(this.#calls, toolUseId, call, MAX_CALLS);
  }

  /** @returns `task_started` if the result names work that goes on in the background */
  launched(line: Fields, results: readonly Fields[], at: number): Fields | null {
    const toolUseId = textOf(results[0]?.tool_use_id);
    const call = this.#calls.get(toolUseId ?? '') ?? {};
    const told = fieldsOf(line.toolUseResult);
    const foreground = told.status === 'completed' || told.status === 'forked' ? textOf(told.agentId) : null;
    // A subagent that has answered may have left a command running: only its own transcript says so.
    if (foreground !== null) this.#subagents.add(foreground);
    this.#schedules(told, call, at);
    const found = results[0]?.is_error === true ? null : launchIn(line, results[0] ?? {}, call);
    if (found === null || this.isRunning(found.id)) return null;
    const { id, type } = found;
    if (type === 'local_agent') this.#subagents.add(id);
    const parentId = textOf(line.agentId);
    const runId = this.#nextRun(id);
    const timeoutMs = type === 'monitor' && told.persistent !== true ? numberOf(told.timeoutMs) : null;
    const expiresAt = timeoutMs === null ? undefined : at + timeoutMs;
    this.#tasks.forget(id);
    this.#tasks.take(id, 'start', { id, type, runId, parentId, startedAt: at, expiresAt });
    const names = [call.description, told.description, this.#described.get(id), told.summary, told.workflowName];
    const description = names.map(textOf).find((name) => name !== null) ?? textOf(told.commandName) ?? '';
    remember(this.#described, id, description, MAX_TOLD);
    return compact({
      type: 'system',
      subtype: 'task_started',
      uuid: `${line.uuid}/task`,
      task_id: id,
      run_id: runId,
      tool_use_id: toolUseId,
      parent_task_id: parentId,
      description,
      task_type: type ?? undefined,
      subagent_type: call.subagent_type,
      prompt: type === 'local_agent' ? call.prompt : undefined,
      is_backgrounded: true,
    });
  }

  /** @returns `task_notification` for each running task that the results of other calls say has ended */
  endedByCall(line: Fields, results: readonly Fields[]): { message: Fields; ref: TaskRef; isSubagent: boolean }[] {
    const [only] = results;
    if (results.length !== 1 || only?.is_error === true) return [];
    const asked = listOf(this.#calls.get(textOf(only?.tool_use_id) ?? '')?.texts);
    // Where the fields are not written, only the text says it: that of any command, so its call has to name the task.
    const isText = line.toolUseResult === undefined;
    const whole = isText ? textFields(contentText(only?.content)) : fieldsOf(line.toolUseResult);
    return [whole, fieldsOf(whole.task)].flatMap((told) => {
      const ids = isText ? asked : TASK_IDS.map((name) => told[name]);
      const task = this.#running(ids.map(textOf).find((id) => id !== null && this.isRunning(id)) ?? null);
      const isStopped = /^\s*(?:Successfully )?(?:stopped|killed)\b/i.test(textOf(told.message) ?? '');
      const status = isStopped ? 'stopped' : STATUSES.get(told.status);
      if (task === undefined || status === undefined) return [];
      const exitCode = numberOf(told.exitCode);
      const ref = this.#end(task);
      remember(this.#stopped, task.id, ref, MAX_TOLD);
      const message = compact({
        ...{ type: 'system', subtype: 'task_notification', task_id: task.id, run_id: task.runId, status },
        summary: exitCode === null ? undefined : `Ended with exit code ${exitCode}`,
      });
      return [{ message, ref, isSubagent: task.type === 'local_agent' }];
    });
  }

  /**
   * @param at epoch milliseconds
   * @returns the SDK's messages for a notification; none if the same end was reported before. One without a status is an
   *   event of a task that goes on
   */
  ended({ text, fields }: Notification, at: number): Fields[] {
    const id = textOf(fields.task_id);
    if (id === null) return [];
    const running = this.#running(id);
    if (running === undefined && this.#told.has(text)) return [];
    const notification = { type: 'system', subtype: 'task_notification', run_id: running?.runId, ...fields };
    if (!STATUSES.has(fields.status)) {
      if (running === undefined) return [];
      const event = compact({ ...notification, status: undefined });
      const status = giveUpOf(running, textOf(fields.event) ?? '', at);
      if (status === null) return [event];
      remember(this.#told, text, this.#end(running), MAX_TOLD);
      return [compact({ ...notification, status, summary: fields.event, event: undefined })];
    }
    const stopped = this.#stopped.get(id);
    if (running === undefined && stopped !== undefined && this.#stopped.delete(id)) {
      remember(this.#told, text, stopped, MAX_TOLD);
      return [];
    }
    // One that was given up may still report how it ended.
    const known = this.#tasks.verdict(id, 'end') === 'repeats' ? undefined : this.#tasks.about(id);
    const isAgain = known === undefined && this.#runs.has(id);
    const runId = known === undefined ? this.#nextRun(id) : known.runId;
    remember(this.#told, text, this.#end({ id, runId }), MAX_TOLD);
    const started = { type: 'system', subtype: 'task_started', is_backgrounded: true, task_type: 'local_agent' };
    const summary = textOf(fields.summary) ?? '';
    return [
      ...(isAgain ? [compact({ ...started, task_id: id, run_id: runId, description: summary })] : []),
      // The last event of a monitor comes with its end.
      ...(running === undefined || fields.event === undefined ? [] : [compact({ ...notification, status: undefined })]),
      compact({ ...notification, run_id: runId }),
    ];
  }

  /** The task whose end, or event, a notification is about. */
  taskOf({ text, fields }: Notification): TaskRef | null {
    const running = this.#running(textOf(fields.task_id));
    return (
      this.#told.get(text) ?? (running === undefined ? null : { taskId: running.id, runId: running.runId ?? null })
    );
  }

  /** Tasks of the main thread that ran at `at` and are not in the CLI's own list of then. */
  unlisted(ids: readonly string[], at: number): string[] {
    const isUnlisted = ([id, { parentId, startedAt }]: [string, Launch]) =>
      parentId === null && startedAt <= at && !ids.includes(id);
    return this.#tasks.entries().flatMap((one) => (isUnlisted(one) ? one[0] : []));
  }

  isRunning(id: string): boolean {
    return this.#tasks.isOpen(id);
  }

  /** Another process has served the session since `at`: what ran before is lost. */
  processReplaced(at: number): void {
    this.lost(this.#tasks.entries().flatMap(([id, { startedAt }]) => (startedAt <= at ? id : [])));
  }

  /** Nothing has reported how these ended, and something may do so yet. */
  lost(ids: readonly string[]): void {
    for (const id of ids) this.#tasks.take(id, 'presume');
  }

  #running(id: string | null): Launch | undefined {
    return id !== null && this.isRunning(id) ? this.#tasks.about(id) : undefined;
  }

  /** A job that the CLI says it has started: the next scheduled prompt comes from it. */
  fired(id: string | null): void {
    this.#fired = id;
  }

  /** The wake-up that a scheduled prompt comes from. Several may bring the same prompt. */
  timerOf(prompt: string): Timer | null {
    const fired = this.#fired === null ? undefined : this.#timers.get(this.#fired);
    this.#fired = null;
    return fired ?? this.#timers.get(prompt.trim()) ?? null;
  }

  #end({ id, runId }: Pick<Launch, 'id' | 'runId'>): TaskRef {
    this.#tasks.take(id, 'end');
    return { taskId: id, runId: runId ?? null };
  }

  #schedules(told: Fields, call: Fields, at: number): void {
    const prompt = textOf(call.prompt);
    if (prompt === null || (numberOf(told.scheduledFor) === null && textOf(call.cron) === null)) return;
    const reason = textOf(call.reason) ?? textOf(told.humanSchedule) ?? textOf(call.cron);
    for (const key of [prompt.trim(), textOf(told.id)])
      if (key !== null) remember(this.#timers, key, { reason, setAt: at }, MAX_TIMERS);
  }

  /** Undefined for the first run: only later ones need a name. */
  #nextRun(id: string): string | undefined {
    const count = (this.#runs.get(id) ?? 0) + 1;
    this.#runs.set(id, count);
    return count === 1 ? undefined : `${id}-${count}`;
  }
}

/** The fields of a result that only has its text: JSON, or an element for each. */
function textFields(text: string): Fields {
  const json = parseJson(text);
  if (isObject(json)) return json;
  const element = (name: string) => new RegExp(`<${name}>([^<]{1,${MAX_ID}})</${name}>`).exec(text)?.[1];
  const exitCode = Number(element('exit_code') ?? Number.NaN);
  return compact({ status: element('status'), exitCode: Number.isFinite(exitCode) ? exitCode : undefined });
}

/** How a monitor ended that reports it as its last event. Its command may print the same words: not before its time. */
function giveUpOf({ type, expiresAt }: Launch, event: string, at: number): string | null {
  if (type !== 'monitor') return null;
  if (/^\[Monitor stopped\b/.test(event)) return 'stopped';
  const isTime = expiresAt === undefined || at >= expiresAt - EXPIRY_MS;
  return isTime && /^\[Monitor (?:expired|timed out)\b/.test(event) ? 'completed' : null;
}
