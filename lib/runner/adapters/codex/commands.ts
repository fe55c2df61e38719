import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { earliest, setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';
import { splitText } from '../writer/size-limits';
import { typedCommand } from './items';

interface Command {
  turnId: string;
  processId: string | null;
  description: string;
  startedAt: number | null;
  /** Output written so far, or to write once it is a task; null once too long to compare. */
  output: string | null;
}

const MAX_KNOWN = 1_000;
/** UTF-16 units of output kept for comparison, and written of the full output. */
const MAX_OUTPUT = 128 * 1024;
const MAX_DESCRIPTION = 2_000;
/** Time to wait for the end of an unlisted command. */
const MISSING_MS = 2_000;

/**
 * The commands of one thread. A command still running when its turn ends continues as a background task; Codex does not
 * announce that, but its end follows the turn's.
 *
 * @see commandExecution and thread/backgroundTerminals, `codex app-server` 0.171.0
 */
export class Commands {
  readonly #writer: SessionWriter;
  readonly #known = new Map<string, Command>();
  /** Processes that a person terminated through Interlude. */
  readonly #stopped = new Map<string, true>();
  /** Unlisted commands, with the time at which each counts as lost. */
  readonly #missing = new Map<string, number>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** Resumes tasks of an earlier process. */
  restore(taskIds: readonly string[]): void {
    for (const id of taskIds) {
      setBounded(
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
    setBounded(this.#known, id, command, MAX_KNOWN);
  }

  wrote(id: string, delta: string): void {
    const command = this.#known.get(id);
    if (command === undefined || delta === '') return;
    command.output = command.output === null || command.output.length > MAX_OUTPUT ? null : command.output + delta;
    if (this.#writer.isRunning(id)) this.#writeOutput(id, delta);
  }

  /** Commands running as background tasks. */
  get running(): string[] {
    return [...this.#known.keys()].filter((id) => this.#writer.isRunning(id));
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** @param processId terminated by a person */
  stopping(processId: string): void {
    setBounded(this.#stopped, processId, true, MAX_KNOWN);
  }

  /**
   * Turns running commands of an ended turn into tasks.
   * @param parentTaskId the subagent whose turn it was
   * @returns their ids
   */
  turnEnded(turnId: string, parentTaskId: string | null): string[] {
    const running = [...this.#known].filter(([id, one]) => one.turnId === turnId && !this.#writer.isRunning(id));
    for (const [id, command] of running) this.#startTask(id, command, parentTaskId);
    return running.map(([id]) => id);
  }

  /** Starts a task for a command that predates the connection. */
  found(id: string, item: Fields, parentTaskId: string | null): void {
    this.started(id, '', item);
    const command = this.#known.get(id);
    if (command !== undefined && !this.#writer.isRunning(id)) this.#startTask(id, command, parentTaskId);
  }

  /** Ends a task. */
  ended(id: string, item: Fields): void {
    const { processId, aggregatedOutput, exitCode, startedAtMs, completedAtMs } = item;
    const command = this.#known.get(id);
    this.#known.delete(id);
    this.#missing.delete(id);
    const code = numberOf(exitCode);
    const whole = textOf(aggregatedOutput) ?? '';
    this.#writeFullOutput(id, command?.output ?? null, whole);
    const process = textOf(processId) ?? command?.processId ?? '';
    // A terminated command has no exit code of its own.
    const isStopped = this.#stopped.delete(process) || code === -1;
    this.#writer.taskCompleted({
      task_id: id,
      tool_use_id: id,
      status: isStopped ? 'stopped' : code === 0 ? 'completed' : 'failed',
      exit_code: isStopped ? null : code,
      ...times(startedAtMs, completedAtMs),
    });
  }

  /** Handles a command that ended within its turn. */
  answered(id: string): void {
    this.#known.delete(id);
  }

  /** Reconciles with Codex's list of background commands. */
  listed(ids: ReadonlySet<string>, now: number): void {
    for (const [id] of this.#known) {
      if (!this.#writer.isRunning(id) || ids.has(id)) this.#missing.delete(id);
      else if (!this.#missing.has(id)) setBounded(this.#missing, id, now + MISSING_MS, MAX_KNOWN);
    }
  }

  get dueAt(): number | null {
    return earliest(this.#missing.values());
  }

  elapsed(now: number): void {
    for (const [id, at] of this.#missing) {
      if (at > now) continue;
      this.#missing.delete(id);
      this.#known.delete(id);
      const error = 'Codex no longer lists this command; the outcome is unknown. It may still be running.';
      this.#writer.taskCompleted({ task_id: id, tool_use_id: id, status: 'lost', error });
    }
  }

  /** Forgets everything; the writer ends the tasks. */
  clear(): void {
    this.#known.clear();
    this.#missing.clear();
    this.#stopped.clear();
  }

  #startTask(id: string, { description, output, startedAt }: Command, parentTaskId: string | null): void {
    this.#writer.taskStarted({
      task_id: id,
      tool_use_id: id,
      description,
      task_type: 'local_bash',
      parent_task_id: parentTaskId,
      ...times(startedAt, null),
    });
    if (output !== null) this.#writeOutput(id, output);
  }

  /** Writes the full output if it differs from what was written. */
  #writeFullOutput(id: string, entry: string | null, whole: string): void {
    if (whole !== '' && entry !== whole) {
      const parts = splitText(tailOf(whole, MAX_OUTPUT));
      for (const [index, text] of parts.entries()) {
        this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text, ...(index === 0 ? { from: 0 } : {}) });
      }
    }
    if (whole !== '' || entry) this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text: '', ended: true });
  }

  #writeOutput(id: string, output: string): void {
    for (const text of splitText(output)) this.#writer.custom(CUSTOM.taskOutput, { task_id: id, text });
  }
}

/** Result of a command that outlives its turn. */
export const CONTINUES_IN_BACKGROUND = 'It continues in the background.';

/** Returns the end of a text, at most `most` UTF-16 units. */
function tailOf(text: string, most: number): string {
  return text.length <= most ? text : text.slice(-most).replace(/^[\uDC00-\uDFFF]/, '');
}

function times(startedAt: unknown, endedAt: unknown): { started_at?: number; ended_at?: number } {
  const [started, ended] = [numberOf(startedAt), numberOf(endedAt)];
  return { ...(started === null ? {} : { started_at: started }), ...(ended === null ? {} : { ended_at: ended }) };
}
