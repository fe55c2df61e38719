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
import { setBounded } from '../wire';
import { TASK_ENDS } from '../writer/task-runs';
import { contentText } from './transcript-line';
import type { TaskRef } from './turn-attribution';

/** Calls whose input is kept until the result shows that they continue as a task. */
const MAX_CALLS = 512;
/** Ends kept to recognize repeated reports. */
const MAX_ENDS = 1_024;
const MAX_TIMERS = 128;

/** Longest input text that may be a task id, UTF-16 units. */
const MAX_ID = 256;
/** Longest lead of a monitor's own expiry report, milliseconds. */
const EXPIRY_MS = 1_000;

/** Longest lag of a notification behind the stop hook's list. */
const UNLISTED_MS = 5_000;
const MAX_LOST = 256;

interface Launch extends LaunchedWork {
  runId?: string | undefined;
  parentId: string | null;
  /** Epoch milliseconds. */
  startedAt: number;
  /** Monitor deadline, epoch milliseconds. */
  expiresAt?: number | undefined;
}

export interface UnlistedTasks {
  /** Tasks missing from the CLI's list at `at`, epoch milliseconds. */
  unlisted: { ids: string[]; at: number } | null;
  /** Tasks presumed lost because they stayed unlisted. */
  lost: string[];
}

export interface Timer {
  reason: string | null;
  /** Epoch milliseconds. */
  setAt: number;
}

/**
 * Extracts background tasks from a transcript as SDK messages: a tool result names work that continues, and a
 * notification or a later result reports its end.
 *
 * Transcripts do not name runs. A resumed subagent ends again, so that end gets a new run.
 */
export class TranscriptTasks {
  readonly #calls = new Map<string, Fields>();
  readonly #tasks = new Entities<'task', Launch>('task', { mostOpen: Number.POSITIVE_INFINITY, mostEnded: MAX_ENDS });
  readonly #runs = new Map<string, number>();
  /** By subagent id: a resuming message does not repeat the description. */
  readonly #descriptions = new Map<string, string>();
  /** By notification text. */
  readonly #reportedEnds = new Map<string, TaskRef>();
  /** Tasks the agent stopped itself; a notification of the same end may follow. */
  readonly #stopped = new Map<string, TaskRef>();
  readonly #subagents = new Set<string>();
  /** Wake-ups by prompt and by id. */
  readonly #timers = new Map<string, Timer>();
  #fired: string | null = null;
  #unlisted: UnlistedTasks['unlisted'] = null;
  #presumedLost: string[] = [];

  get subagents(): string[] {
    return [...this.#subagents];
  }

  called(toolUseId: string, input: Fields): void {
    const { description, subagent_type, prompt, run_in_background, reason, cron } = input;
    const texts = Object.values(input).filter((value) => textOf(value) !== null && `${value}`.length <= MAX_ID);
    const call = compact({ description, subagent_type, prompt, run_in_background, reason, cron, texts });
    setBounded(this.#calls, toolUseId, call, MAX_CALLS);
  }

  /** @returns `task_started` if the result names background work */
  launched(line: Fields, results: readonly Fields[], at: number): Fields | null {
    const toolUseId = textOf(results[0]?.tool_use_id);
    const call = this.#calls.get(toolUseId ?? '') ?? {};
    const details = fieldsOf(line.toolUseResult);
    const foreground = details.status === 'completed' || details.status === 'forked' ? textOf(details.agentId) : null;
    // A finished subagent may leave a command running, which only its own transcript shows.
    if (foreground !== null) this.#subagents.add(foreground);
    this.#addTimer(details, call, at);
    const found = results[0]?.is_error === true ? null : parseLaunch(line, results[0] ?? {}, call);
    if (found === null || this.isRunning(found.id)) return null;
    const { id, type } = found;
    if (type === 'local_agent') this.#subagents.add(id);
    const parentId = textOf(line.agentId);
    const runId = this.#nextRun(id);
    const timeoutMs = type === 'monitor' && details.persistent !== true ? numberOf(details.timeoutMs) : null;
    const expiresAt = timeoutMs === null ? undefined : at + timeoutMs;
    this.#tasks.forget(id);
    this.#tasks.take(id, 'start', { id, type, runId, parentId, startedAt: at, expiresAt });
    const names = [
      call.description,
      details.description,
      this.#descriptions.get(id),
      details.summary,
      details.workflowName,
    ];
    const description = names.map(textOf).find((name) => name !== null) ?? textOf(details.commandName) ?? '';
    setBounded(this.#descriptions, id, description, MAX_ENDS);
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

  /** @returns `task_notification` for each running task that other results report as ended */
  endedByCall(line: Fields, results: readonly Fields[]): { message: Fields; ref: TaskRef; isSubagent: boolean }[] {
    const [only] = results;
    if (results.length !== 1 || only?.is_error === true) return [];
    const callTexts = listOf(this.#calls.get(textOf(only?.tool_use_id) ?? '')?.texts);
    // Without structured fields only the text remains, which any command may print: its call must name the task.
    const isText = line.toolUseResult === undefined;
    const whole = isText ? textFields(contentText(only?.content)) : fieldsOf(line.toolUseResult);
    return [whole, fieldsOf(whole.task)].flatMap((details) => {
      const ids = isText ? callTexts : TASK_IDS.map((name) => details[name]);
      const task = this.#running(ids.map(textOf).find((id) => id !== null && this.isRunning(id)) ?? null);
      const isStopped = /^\s*(?:Successfully )?(?:stopped|killed)\b/i.test(textOf(details.message) ?? '');
      const status = isStopped ? 'stopped' : TASK_ENDS.get(details.status);
      if (task === undefined || status === undefined) return [];
      const exitCode = numberOf(details.exitCode);
      const ref = this.#end(task);
      setBounded(this.#stopped, task.id, ref, MAX_ENDS);
      const message = compact({
        ...{ type: 'system', subtype: 'task_notification', task_id: task.id, run_id: task.runId, status },
        summary: exitCode === null ? undefined : `Ended with exit code ${exitCode}`,
      });
      return [{ message, ref, isSubagent: task.type === 'local_agent' }];
    });
  }

  /**
   * Converts a notification.
   * @param at epoch milliseconds
   * @returns SDK messages; empty for a repeated end. Without a status it is an event of a running task
   */
  ended({ text, fields }: Notification, at: number): Fields[] {
    const id = textOf(fields.task_id);
    if (id === null) return [];
    const running = this.#running(id);
    if (running === undefined && this.#reportedEnds.has(text)) return [];
    const notification = { type: 'system', subtype: 'task_notification', run_id: running?.runId, ...fields };
    if (!TASK_ENDS.has(fields.status)) {
      if (running === undefined) return [];
      const event = compact({ ...notification, status: undefined });
      const status = giveUpOf(running, textOf(fields.event) ?? '', at);
      if (status === null) return [event];
      setBounded(this.#reportedEnds, text, this.#end(running), MAX_ENDS);
      return [compact({ ...notification, status, summary: fields.event, event: undefined })];
    }
    const stopped = this.#stopped.get(id);
    if (running === undefined && stopped !== undefined && this.#stopped.delete(id)) {
      setBounded(this.#reportedEnds, text, stopped, MAX_ENDS);
      return [];
    }
    // A presumed-lost task may still report its end.
    const known = this.#tasks.verdict(id, 'end') === 'repeats' ? undefined : this.#tasks.about(id);
    const isAgain = known === undefined && this.#runs.has(id);
    const runId = known === undefined ? this.#nextRun(id) : known.runId;
    setBounded(this.#reportedEnds, text, this.#end({ id, runId }), MAX_ENDS);
    const started = { type: 'system', subtype: 'task_started', is_backgrounded: true, task_type: 'local_agent' };
    const summary = textOf(fields.summary) ?? '';
    return [
      ...(isAgain ? [compact({ ...started, task_id: id, run_id: runId, description: summary })] : []),
      // A monitor's last event arrives with its end.
      ...(running === undefined || fields.event === undefined ? [] : [compact({ ...notification, status: undefined })]),
      compact({ ...notification, run_id: runId }),
    ];
  }

  taskOf({ text, fields }: Notification): TaskRef | null {
    const running = this.#running(textOf(fields.task_id));
    return (
      this.#reportedEnds.get(text) ??
      (running === undefined ? null : { taskId: running.id, runId: running.runId ?? null })
    );
  }

  /**
   * Applies a stop hook's list of the tasks running at `at`. Tasks of the main thread that it lacks may be reported by
   * a later line.
   */
  listed(listed: readonly string[], at: number): void {
    const ids = this.#tasks.entries().flatMap(([id, { parentId, startedAt }]) => {
      return parentId === null && startedAt <= at && !listed.includes(id) ? id : [];
    });
    this.#unlisted = ids.length === 0 ? null : { ids, at };
  }

  /** Presumes tasks lost that stay unlisted and unreported for `UNLISTED_MS`. @returns their ids */
  presumeUnlisted(now: number): string[] {
    if (this.#unlisted === null || now - this.#unlisted.at < UNLISTED_MS) return [];
    const ids = this.#unlisted.ids.filter((id) => this.isRunning(id));
    this.#unlisted = null;
    this.lost(ids);
    this.#presumedLost = [...this.#presumedLost, ...ids].slice(-MAX_LOST);
    return ids;
  }

  get unlistedState(): UnlistedTasks {
    return { unlisted: this.#unlisted, lost: this.#presumedLost };
  }

  restoreUnlisted({ unlisted, lost }: UnlistedTasks): void {
    this.#unlisted = unlisted;
    this.#presumedLost = lost;
    this.lost(lost);
  }

  isRunning(id: string): boolean {
    return this.#tasks.isOpen(id);
  }

  /** Marks earlier tasks as lost after another process took over at `at`. */
  processReplaced(at: number): void {
    this.lost(this.#tasks.entries().flatMap(([id, { startedAt }]) => (startedAt <= at ? id : [])));
  }

  /** Presumes tasks lost; a report may still correct that. */
  lost(ids: readonly string[]): void {
    for (const id of ids) this.#tasks.take(id, 'presume');
  }

  #running(id: string | null): Launch | undefined {
    return id !== null && this.isRunning(id) ? this.#tasks.about(id) : undefined;
  }

  /** Notes that the next scheduled prompt comes from this job. */
  fired(id: string | null): void {
    this.#fired = id;
  }

  /** Finds the wake-up behind a scheduled prompt; several may share a prompt. */
  timerOf(prompt: string): Timer | null {
    const fired = this.#fired === null ? undefined : this.#timers.get(this.#fired);
    this.#fired = null;
    return fired ?? this.#timers.get(prompt.trim()) ?? null;
  }

  #end({ id, runId }: Pick<Launch, 'id' | 'runId'>): TaskRef {
    this.#tasks.take(id, 'end');
    return { taskId: id, runId: runId ?? null };
  }

  #addTimer(details: Fields, call: Fields, at: number): void {
    const prompt = textOf(call.prompt);
    if (prompt === null || (numberOf(details.scheduledFor) === null && textOf(call.cron) === null)) return;
    const reason = textOf(call.reason) ?? textOf(details.humanSchedule) ?? textOf(call.cron);
    for (const key of [prompt.trim(), textOf(details.id)])
      if (key !== null) setBounded(this.#timers, key, { reason, setAt: at }, MAX_TIMERS);
  }

  /** Id of a task's next run; undefined for the first, because only later runs need an id. */
  #nextRun(id: string): string | undefined {
    const count = (this.#runs.get(id) ?? 0) + 1;
    this.#runs.set(id, count);
    return count === 1 ? undefined : `${id}-${count}`;
  }
}

/** Parses a text-only result: JSON or one element per field. */
function textFields(text: string): Fields {
  const json = parseJson(text);
  if (isObject(json)) return json;
  const element = (name: string) => new RegExp(`<${name}>([^<]{1,${MAX_ID}})</${name}>`).exec(text)?.[1];
  const exitCode = Number(element('exit_code') ?? Number.NaN);
  return compact({ status: element('status'), exitCode: Number.isFinite(exitCode) ? exitCode : undefined });
}

/**
 * Outcome that a monitor reports as its last event. The command may print the same words, so the time must match.
 */
function giveUpOf({ type, expiresAt }: Launch, event: string, at: number): string | null {
  if (type !== 'monitor') return null;
  if (/^\[Monitor stopped\b/.test(event)) return 'stopped';
  const isTime = expiresAt === undefined || at >= expiresAt - EXPIRY_MS;
  return isTime && /^\[Monitor (?:expired|timed out)\b/.test(event) ? 'completed' : null;
}

interface LaunchedWork {
  id: string;
  /** Null if unspecified (tools of later CLIs). */
  type: string | null;
}

/** Fields that hold a background task id. */
const TASK_IDS = ['backgroundTaskId', 'taskId', 'task_id', 'agentId', 'shellId', 'shell_id', 'bash_id'] as const;
/** Fields that hold the id of a resumed subagent. */
const RESUMED_IDS = ['resumedAgentId', 'revivedAgentId'] as const;
/** First sentences of results that launch background work, for results without structured fields. */
const LAUNCHES = [
  { type: 'local_bash', text: /^Command running in background with ID: ([\w-]{1,256})\b/, asks: true },
  { type: 'local_agent', text: /^Async agent launched successfully[\s\S]{0,500}?\bagentId: ([\w-]{1,256})\b/ },
  { type: 'local_workflow', text: /^Workflow launched in background\. Task ID: ([\w-]{1,256})\b/ },
  { type: 'monitor', text: /^Monitor started \(task ([\w-]{1,256})\b/ },
] as const;

/** Detects launched work by the result's shape, for any tool. */
function parseLaunch(line: Fields, result: Fields, call: Fields): LaunchedWork | null {
  const details = fieldsOf(line.toolUseResult);
  const resumed = details.success === true ? named(details, RESUMED_IDS) : null;
  if (resumed !== null) return { id: resumed, type: 'local_agent' };
  const isLaunched =
    details.isAsync === true ||
    details.background === true ||
    /launched$/.test(`${details.status}`) ||
    typeof details.persistent === 'boolean';
  const id = named(details, ['backgroundTaskId']) ?? (isLaunched ? launchedId(details) : null);
  // A workflow that fails to compile never started.
  if (id !== null) return textOf(details.error) === null ? { id, type: launchedType(details, id) } : null;
  if (line.toolUseResult !== undefined) return null;
  const text = contentText(result.content).slice(0, 8_192);
  for (const { type, text: sentence, ...more } of LAUNCHES) {
    const found = sentence.exec(text)?.[1];
    // A foreground command may print the same sentence.
    if (found !== undefined && (!('asks' in more) || call.run_in_background === true)) return { id: found, type };
  }
  return null;
}

function named(details: Fields, names: readonly string[]): string | null {
  return names.map((name) => textOf(details[name])).find((value) => value !== null) ?? null;
}

/** Later CLIs may name the id differently. */
function launchedId(details: Fields): string | null {
  const others = Object.keys(details).filter(
    (name) => /(?:^id|Id|_id)$/.test(name) && !/tool_?use|parent|session|run/i.test(name),
  );
  return named(details, [...TASK_IDS, ...others]);
}

function launchedType(details: Fields, id: string): string | null {
  const type = textOf(details.taskType) ?? textOf(details.task_type);
  if (type !== null) return type;
  if (details.agentId === id) return 'local_agent';
  if (details.backgroundTaskId === id && details.stdout !== undefined) return 'local_bash';
  if (typeof details.persistent === 'boolean') return 'monitor';
  return details.sessionUrl === undefined ? null : 'remote_agent';
}

export interface Notification {
  /** As in the transcript; identifies the notification. */
  text: string;
  fields: Fields;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&' };

/** The CLI's internal markers. */
const MARKER = /^__/;

/**
 * Parses the `<task-notification>` elements of a prompt, one per task id. The CLI escapes `<`, `>` and `&` inside them.
 */
export function parseNotifications(text: string): Notification[] {
  return [...text.matchAll(/<task-notification>([\s\S]*?)<\/task-notification>/g)].flatMap(([whole, body = '']) => {
    const ids = [...body.matchAll(/<task-id>([^<]*)<\/task-id>/g)].map(([, id = '']) => id.trim());
    const field = (name: string) => {
      const value = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(body)?.[1]?.trim();
      return value?.replace(/&(lt|gt|amp);/g, (_, entity: string) => ENTITIES[entity] ?? '');
    };
    const number = (name: string) => numberOf(Number(field(name) ?? Number.NaN)) ?? undefined;
    const usage = compact({
      total_tokens: number('subagent_tokens') ?? number('total_tokens'),
      tool_uses: number('tool_uses'),
      duration_ms: number('duration_ms'),
    });
    const tasks = ids.filter((id) => id !== '' && !MARKER.test(id));
    return tasks.map((id) => ({
      text: tasks.length === 1 ? whole : `${id} ${whole}`,
      fields: compact({
        task_id: id,
        tool_use_id: field('tool-use-id'),
        status: field('status'),
        summary: field('summary'),
        event: field('event'),
        output_file: field('output-file'),
        usage: Object.keys(usage).length > 0 ? usage : undefined,
      }),
    }));
  });
}
