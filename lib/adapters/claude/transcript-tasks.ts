import { compact, type Fields, fieldsOf, numberOf, textOf } from '@/lib/protocol/fields';
import { remember } from '../remember';
import type { TaskRef } from './task-ends';

/** Most tool calls whose input is remembered until their result says that they go on as a task. */
const MAX_CALLS = 512;
/** Most notifications that are remembered, to recognise them when they are read again. */
const MAX_TOLD = 1_024;

/**
 * Background tasks as a transcript has them: the result of a tool call says that it goes on in the background, and a
 * notification says that it has ended. Each becomes the SDK's own message about it.
 *
 * A transcript names no runs. A resumed subagent ends a second time, so that end gets a run of its own.
 */
export class TranscriptTasks {
  readonly #calls = new Map<string, Fields>();
  /** By task: the run that is going on. */
  readonly #running = new Map<string, string | undefined>();
  readonly #runs = new Map<string, number>();
  /** By notification that was read: the end it tells of. */
  readonly #told = new Map<string, TaskRef>();
  readonly #subagents = new Set<string>();

  get subagents(): string[] {
    return [...this.#subagents];
  }

  called(toolUseId: string, input: Fields): void {
    const { description, subagent_type, prompt } = input;
    remember(this.#calls, toolUseId, compact({ description, subagent_type, prompt }), MAX_CALLS);
  }

  /** @returns `task_started` if the result is that of a call that goes on in the background */
  launched(line: Fields, results: readonly Fields[]): Fields | null {
    const result = fieldsOf(line.toolUseResult);
    const shell = textOf(result.backgroundTaskId);
    const agent = result.isAsync === true ? textOf(result.agentId) : null;
    const id = shell ?? agent;
    if (id === null) return null;
    const toolUseId = textOf(results[0]?.tool_use_id);
    const { description, subagent_type, prompt } = this.#calls.get(toolUseId ?? '') ?? {};
    if (agent !== null) this.#subagents.add(agent);
    const runId = this.#nextRun(id);
    this.#running.set(id, runId);
    return compact({
      type: 'system',
      subtype: 'task_started',
      uuid: `${line.uuid}/task`,
      task_id: id,
      run_id: runId,
      tool_use_id: toolUseId,
      description: textOf(description) ?? textOf(result.description) ?? '',
      task_type: shell === null ? 'local_agent' : 'local_bash',
      subagent_type,
      prompt: agent === null ? undefined : prompt,
      is_backgrounded: true,
    });
  }

  /** @returns the SDK's messages for a notification; none if it was told before (first queued, then taken up) */
  ended({ text, fields }: Notification): Fields[] {
    const id = textOf(fields.task_id);
    if (id === null || this.#told.has(text)) return [];
    const isRunning = this.#running.has(id);
    const isAgain = !isRunning && this.#runs.has(id);
    const runId = isRunning ? this.#running.get(id) : this.#nextRun(id);
    this.#running.delete(id);
    remember(this.#told, text, { taskId: id, runId: runId ?? null }, MAX_TOLD);
    const started = { type: 'system', subtype: 'task_started', is_backgrounded: true, task_type: 'local_agent' };
    const summary = textOf(fields.summary) ?? '';
    return [
      ...(isAgain ? [compact({ ...started, task_id: id, run_id: runId, description: summary })] : []),
      compact({ type: 'system', subtype: 'task_notification', run_id: runId, ...fields }),
    ];
  }

  /** The end that a notification tells of, if it was read. */
  endOf({ text }: Notification): TaskRef | null {
    return this.#told.get(text) ?? null;
  }

  /** Undefined for the first run: until there is a second, they need no names. */
  #nextRun(id: string): string | undefined {
    const run = (this.#runs.get(id) ?? 0) + 1;
    this.#runs.set(id, run);
    return run === 1 ? undefined : `${id}-${run}`;
  }
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
        output_file: field('output-file'),
        usage: Object.keys(usage).length > 0 ? usage : undefined,
      }),
    };
  });
}
