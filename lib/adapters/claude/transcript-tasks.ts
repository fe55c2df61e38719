import { compact, type Fields, fieldsOf, numberOf, parseJson, textOf } from '@/lib/protocol/fields';
import { remember } from '../remember';
import { contentText } from './stand-in';
import type { TaskRef } from './task-ends';
import { STATUSES } from './task-run';

/** Most tool calls whose input is remembered until their result says that they go on as a task. */
const MAX_CALLS = 512;
/** Most ends that are remembered, to recognise them when they are reported again. */
const MAX_TOLD = 1_024;
/** Most scheduled wake-ups that are remembered until they fire. */
const MAX_TIMERS = 64;

/** Names under which the CLI's tools give the id of background work, in results and in calls that stop it. */
const TASK_IDS = ['backgroundTaskId', 'taskId', 'task_id', 'agentId', 'shellId', 'shell_id', 'bash_id'] as const;

/** Sentences with which the CLI's tools begin a result that names background work, where its fields are not written. */
const LAUNCHES = [
  { type: 'local_bash', text: /^Command running in background with ID: ([\w-]{1,256})\b/, asks: true },
  { type: 'local_agent', text: /^Async agent launched successfully[\s\S]{0,500}?\bagentId: ([\w-]{1,256})\b/ },
  { type: 'local_workflow', text: /^Workflow launched in background\. Task ID: ([\w-]{1,256})\b/ },
  { type: 'monitor', text: /^Monitor started \(task ([\w-]{1,256})\b/ },
] as const;

interface Launch {
  id: string;
  type: string;
  runId?: string | undefined;
  parentId: string | null;
  /** Epoch milliseconds. */
  startedAt: number;
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
  readonly #running = new Map<string, Launch>();
  /** Tasks of a process that is gone. Its successor may still report how they ended. */
  readonly #lost = new Map<string, Launch>();
  readonly #runs = new Map<string, number>();
  /** Ends by their notification's text. */
  readonly #told = new Map<string, TaskRef>();
  /** Tasks that the agent stopped itself; a notification about the same end may follow. */
  readonly #stopped = new Map<string, TaskRef>();
  readonly #subagents = new Set<string>();
  readonly #timers = new Map<string, Timer>();

  get subagents(): string[] {
    return [...this.#subagents];
  }

  called(toolUseId: string, input: Fields): void {
    const { description, subagent_type, prompt, run_in_background, reason, cron } = input;
    const call = compact({ description, subagent_type, prompt, run_in_background, reason, cron });
    remember(this.#calls, toolUseId, call, MAX_CALLS);
  }

  /** @returns `task_started` if the result names work that goes on in the background */
  launched(line: Fields, results: readonly Fields[], at: number): Fields | null {
    const toolUseId = textOf(results[0]?.tool_use_id);
    const call = this.#calls.get(toolUseId ?? '') ?? {};
    const told = fieldsOf(line.toolUseResult);
    const foreground = told.status === 'completed' ? textOf(told.agentId) : null;
    // A subagent that has answered may have left a command running: only its own transcript says so.
    if (foreground !== null) this.#subagents.add(foreground);
    this.#schedules(told, call, at);
    const found = results[0]?.is_error === true ? null : launchIn(line, results[0] ?? {}, call);
    if (found === null || this.#running.has(found.id)) return null;
    const { id, type } = found;
    if (type === 'local_agent') this.#subagents.add(id);
    const parentId = textOf(line.agentId);
    const runId = this.#nextRun(id);
    this.#running.set(id, { id, type, runId, parentId, startedAt: at });
    const description =
      textOf(call.description) ?? textOf(told.description) ?? textOf(told.summary) ?? textOf(told.workflowName);
    return compact({
      type: 'system',
      subtype: 'task_started',
      uuid: `${line.uuid}/task`,
      task_id: id,
      run_id: runId,
      tool_use_id: toolUseId,
      parent_task_id: parentId,
      description: description ?? '',
      task_type: type,
      subagent_type: call.subagent_type,
      prompt: type === 'local_agent' ? call.prompt : undefined,
      is_backgrounded: true,
    });
  }

  /** @returns `task_notification` for each running task that the results of other calls say has ended */
  endedByCall(line: Fields, results: readonly Fields[]): { message: Fields; ref: TaskRef; isSubagent: boolean }[] {
    const [only] = results;
    if (results.length !== 1 || only?.is_error === true) return [];
    const whole = line.toolUseResult === undefined ? parseJson(contentText(only?.content)) : line.toolUseResult;
    return [fieldsOf(whole), fieldsOf(fieldsOf(whole).task)].flatMap((told) => {
      const ids = TASK_IDS.map((name) => textOf(told[name]));
      const task = this.#running.get(ids.find((id) => id !== null && this.#running.has(id)) ?? '');
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
   * @returns the SDK's messages for a notification; none if the same end was reported before. One without a status is an
   *   event of a task that goes on
   */
  ended({ text, fields }: Notification): Fields[] {
    const id = textOf(fields.task_id);
    if (id === null || this.#told.has(text)) return [];
    const running = this.#running.get(id);
    const notification = { type: 'system', subtype: 'task_notification', run_id: running?.runId, ...fields };
    if (!STATUSES.has(fields.status)) return running === undefined ? [] : [compact(notification)];
    const stopped = this.#stopped.get(id);
    if (running === undefined && stopped !== undefined && this.#stopped.delete(id)) {
      remember(this.#told, text, stopped, MAX_TOLD);
      return [];
    }
    const known = running ?? this.#lost.get(id);
    this.#lost.delete(id);
    const isAgain = known === undefined && this.#runs.has(id);
    const runId = known === undefined ? this.#nextRun(id) : known.runId;
    remember(this.#told, text, this.#end({ id, runId }), MAX_TOLD);
    const started = { type: 'system', subtype: 'task_started', is_backgrounded: true, task_type: 'local_agent' };
    const summary = textOf(fields.summary) ?? '';
    return [
      ...(isAgain ? [compact({ ...started, task_id: id, run_id: runId, description: summary })] : []),
      compact({ ...notification, run_id: runId }),
    ];
  }

  /** The task whose end, or event, a notification is about. */
  taskOf({ text, fields }: Notification): TaskRef | null {
    const running = this.#running.get(textOf(fields.task_id) ?? '');
    return (
      this.#told.get(text) ?? (running === undefined ? null : { taskId: running.id, runId: running.runId ?? null })
    );
  }

  /** Tasks of the main thread that ran at `at` and are not in the CLI's own list of then. */
  unlisted(ids: readonly string[], at: number): string[] {
    return [...this.#running.values()]
      .filter(({ id, parentId, startedAt }) => parentId === null && startedAt <= at && !ids.includes(id))
      .map(({ id }) => id);
  }

  isRunning(id: string): boolean {
    return this.#running.has(id);
  }

  /** Another process has served the session since `at`: what ran before is lost. */
  processReplaced(at: number): void {
    for (const [id, task] of this.#running) {
      if (task.startedAt >= at) continue;
      this.#running.delete(id);
      remember(this.#lost, id, task, MAX_TOLD);
    }
  }

  /** The wake-up that a scheduled prompt comes from. */
  timerOf(prompt: string): Timer | null {
    return this.#timers.get(prompt.trim()) ?? null;
  }

  #end({ id, runId }: Pick<Launch, 'id' | 'runId'>): TaskRef {
    this.#running.delete(id);
    return { taskId: id, runId: runId ?? null };
  }

  #schedules(told: Fields, call: Fields, at: number): void {
    const prompt = textOf(call.prompt);
    if (prompt === null || (numberOf(told.scheduledFor) === null && textOf(call.cron) === null)) return;
    const reason = textOf(call.reason) ?? textOf(told.humanSchedule) ?? textOf(call.cron);
    remember(this.#timers, prompt.trim(), { reason, setAt: at }, MAX_TIMERS);
  }

  /** Undefined for the first run: only later ones have to be told apart. */
  #nextRun(id: string): string | undefined {
    const count = (this.#runs.get(id) ?? 0) + 1;
    this.#runs.set(id, count);
    return count === 1 ? undefined : `${id}-${count}`;
  }
}

/** Background work that a result names: by the shape of its fields, whatever the tool. */
function launchIn(line: Fields, result: Fields, call: Fields): Pick<Launch, 'id' | 'type'> | null {
  const told = fieldsOf(line.toolUseResult);
  const id = TASK_IDS.map((name) => textOf(told[name])).find((value) => value !== null) ?? null;
  if (id !== null) {
    if (told.backgroundTaskId === id) return { id, type: 'local_bash' };
    const isLaunched =
      told.isAsync === true || /launched$/.test(`${told.status}`) || typeof told.persistent === 'boolean';
    if (!isLaunched) return null;
    return { id, type: textOf(told.taskType) ?? (told.agentId === id ? 'local_agent' : 'monitor') };
  }
  if (line.toolUseResult !== undefined) return null;
  const text = contentText(result.content).slice(0, 8_192);
  for (const { type, text: sentence, ...more } of LAUNCHES) {
    const named = sentence.exec(text)?.[1];
    // What a command in the foreground prints is not the CLI's word.
    if (named !== undefined && (!('asks' in more) || call.run_in_background === true)) return { id: named, type };
  }
  return null;
}

export interface Notification {
  /** As in the transcript; the same text is the same notification. */
  text: string;
  fields: Fields;
}

/** The `<task-notification>` elements of a prompt. */
export function notificationsIn(text: string): Notification[] {
  return [...text.matchAll(/<task-notification>([\s\S]*?)<\/task-notification>/g)].map(([whole, body = '']) => {
    const field = (name: string) => new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(body)?.[1]?.trim();
    const number = (name: string) => numberOf(Number(field(name) ?? Number.NaN)) ?? undefined;
    const usage = compact({
      total_tokens: number('subagent_tokens') ?? number('total_tokens'),
      tool_uses: number('tool_uses'),
      duration_ms: number('duration_ms'),
    });
    return {
      text: whole,
      fields: compact({
        task_id: field('task-id'),
        tool_use_id: field('tool-use-id'),
        status: field('status'),
        summary: field('summary'),
        event: field('event'),
        output_file: field('output-file'),
        usage: Object.keys(usage).length > 0 ? usage : undefined,
      }),
    };
  });
}
