import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import { deltasOf } from '../writer/long-text';
import type { SessionWriter } from '../writer/session-writer';
import { typedCommand } from './items';

/** A command that runs. */
interface Command {
  turnId: string;
  processId: string | null;
  description: string;
  startedAt: number | null;
  /** What it wrote as far as that was told, or will be once it is a task; null once it is too long to compare. */
  output: string | null;
}

const MAX_KNOWN = 1_000;
/** UTF-16 units of an output: what is remembered to compare it with the whole, and what is told of the whole. */
const MAX_OUTPUT = 128 * 1024;
const MAX_DESCRIPTION = 2_000;
/** How long a command that Codex does not list any more may still tell how it ended. */
const GONE_MS = 2_000;

/**
 * The commands of one thread. One that has not ended with its turn goes on as a background task; that is nowhere said,
 * but its end comes behind the turn's.
 *
 * @see commandExecution and thread/backgroundTerminals, `codex app-server` 0.171.0
 */
export class Commands {
  readonly #writer: SessionWriter;
  readonly #known = new Map<string, Command>();
  /** Processes that a person has ended through Interlude. */
  readonly #stopped = new Map<string, true>();
  /** By id: since when Codex does not list it. */
  readonly #gone = new Map<string, number>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** Takes up tasks that a process before this one has told of. */
  takeUp(taskIds: readonly string[]): void {
    for (const id of taskIds) {
      remember(
        this.#known,
        id,
        { turnId: '', processId: null, description: '', startedAt: null, output: null },
        MAX_KNOWN,
      );
    }
  }

  started(id: string, turnId: string, item: Fields): void {
    const { processId, startedAtMs, aggregatedOutput } = item;
    const known = this.#known.get(id);
    const command: Command = {
      turnId,
      processId: textOf(processId) ?? known?.processId ?? null,
      description: truncateText(typedCommand(item), MAX_DESCRIPTION),
      startedAt: numberOf(startedAtMs) ?? known?.startedAt ?? null,
      output: known?.output ?? textOf(aggregatedOutput) ?? '',
    };
    remember(this.#known, id, command, MAX_KNOWN);
  }

  wrote(id: string, delta: string): void {
    const command = this.#known.get(id);
    if (command === undefined || delta === '') return;
    command.output = command.output === null || command.output.length > MAX_OUTPUT ? null : command.output + delta;
    if (this.#writer.runs(id)) this.#tellOutput(id, delta);
  }

  /** Those that are background tasks. */
  get running(): string[] {
    return [...this.#known.keys()].filter((id) => this.#writer.runs(id));
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** @param processId which a person ends */
  stopping(processId: string): void {
    remember(this.#stopped, processId, true, MAX_KNOWN);
  }

  /**
   * The turn is over: what still runs of it goes on in the background.
   * @param parentTaskId the subagent whose turn it was
   * @returns their ids
   */
  turnEnded(turnId: string, parentTaskId: string | null): string[] {
    const going = [...this.#known].filter(([id, one]) => one.turnId === turnId && !this.#writer.runs(id));
    for (const [id, command] of going) this.#goesOn(id, command, parentTaskId);
    return going.map(([id]) => id);
  }

  /** One that started before anything was heard of the thread. */
  found(id: string, item: Fields, parentTaskId: string | null): void {
    this.started(id, '', item);
    const command = this.#known.get(id);
    if (command !== undefined && !this.#writer.runs(id)) this.#goesOn(id, command, parentTaskId);
  }

  /** A task has ended, and so it is told. */
  ended(id: string, item: Fields): void {
    const { processId, aggregatedOutput, exitCode, startedAtMs, completedAtMs } = item;
    const command = this.#known.get(id);
    this.#known.delete(id);
    this.#gone.delete(id);
    const code = numberOf(exitCode);
    const whole = textOf(aggregatedOutput) ?? '';
    this.#tellWhole(id, command?.output ?? null, whole);
    const process = textOf(processId) ?? command?.processId ?? '';
    // A command that is terminated has no exit code of its own.
    const isStopped = this.#stopped.delete(process) || code === -1;
    this.#writer.taskCompleted({
      task_id: id,
      tool_use_id: id,
      status: isStopped ? 'stopped' : code === 0 ? 'completed' : 'failed',
      exit_code: isStopped ? null : code,
      ...times(startedAtMs, completedAtMs),
    });
  }

  /** It ended within its turn, as the result of its call says. */
  answered(id: string): void {
    this.#known.delete(id);
  }

  /** What Codex says that runs in the background now. */
  listed(ids: ReadonlySet<string>, now: number): void {
    for (const [id] of this.#known) {
      if (!this.#writer.runs(id) || ids.has(id)) this.#gone.delete(id);
      else if (!this.#gone.has(id)) remember(this.#gone, id, now + GONE_MS, MAX_KNOWN);
    }
  }

  get dueAt(): number | null {
    const times = [...this.#gone.values()];
    return times.length === 0 ? null : Math.min(...times);
  }

  elapsed(now: number): void {
    for (const [id, at] of this.#gone) {
      if (at > now) continue;
      this.#gone.delete(id);
      this.#known.delete(id);
      const error = 'Codex does not know of it any more, and nothing told how it ended. It may still run.';
      this.#writer.taskCompleted({ task_id: id, tool_use_id: id, status: 'lost', error });
    }
  }

  /** The server is gone; the writer says what became of the tasks. */
  clear(): void {
    this.#known.clear();
    this.#gone.clear();
    this.#stopped.clear();
  }

  #goesOn(id: string, { description, output, startedAt }: Command, parentTaskId: string | null): void {
    this.#writer.taskStarted({
      task_id: id,
      tool_use_id: id,
      description,
      task_type: 'local_bash',
      parent_task_id: parentTaskId,
      ...times(startedAt, null),
    });
    if (output !== null) this.#tellOutput(id, output);
  }

  /** What its end says that it wrote, where that is other than was told. */
  #tellWhole(id: string, told: string | null, whole: string): void {
    if (whole !== '' && told !== whole) {
      const parts = deltasOf(lastOf(whole, MAX_OUTPUT));
      for (const [at, text] of parts.entries()) {
        this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text, ...(at === 0 ? { from: 0 } : {}) });
      }
    }
    if (whole !== '' || told) this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text: '', ended: true });
  }

  #tellOutput(id: string, output: string): void {
    for (const text of deltasOf(output)) this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text });
  }
}

/** The result of a command that its turn did not wait for. */
export const GOES_ON = 'It goes on in the background.';

/** At most so many UTF-16 units of a text, its end. */
export function lastOf(text: string, most: number): string {
  return text.length <= most ? text : text.slice(-most).replace(/^[\uDC00-\uDFFF]/, '');
}

function times(startedAt: unknown, endedAt: unknown): { started_at?: number; ended_at?: number } {
  const [started, ended] = [numberOf(startedAt), numberOf(endedAt)];
  return { ...(started === null ? {} : { started_at: started }), ...(ended === null ? {} : { ended_at: ended }) };
}
