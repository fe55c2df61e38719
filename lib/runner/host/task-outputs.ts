import { isAbsolute } from 'node:path';
import type { TaskOutputValue, TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM, taskEndOf } from '@interlude/protocol/event-fields';
import { parseJson, textOf } from '@interlude/protocol/fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { Redactor } from '../logger/redactor';
import type { Cursor } from '../outbox/statements';
import {
  MOST_LIVE,
  NotAFileError,
  OUTPUT_START,
  type OutputPosition,
  type OutputRead,
  readOutput,
} from './output-file';

/**
 * Tails the output files of running tasks and emits what they write.
 *
 * Ordering: output comes after the start of its task and in file order; the final piece comes after the end. While many
 * records are unsent nothing is read: other events go first, and the file keeps the output.
 * Failure: the file position is stored with the emitted output, so the next process continues there. An unreadable file
 * is reported. Only paths that the source named for a running task are read.
 */
export interface TaskOutputsOptions {
  store: (sessionId: string, events: readonly TimedEvent[], cursors: readonly Cursor[]) => Promise<void>;
  /** Number of unsent records and age of the oldest; 0 for a short queue. */
  backlog: () => Promise<{ records: number; oldestAgeMs: number }>;
  redactor: Redactor;
  log: (message: string) => void;
  everyMs?: number;
  now?: () => number;
}

/** A task run whose output is tailed. */
interface TailedTask {
  sessionId: string;
  taskId: string;
  runId: string | null;
  file: string;
  position: OutputPosition;
  hasEnded: boolean;
  /** Time of the last new output. */
  newAt: number;
}

type ReadPieces = Pick<OutputRead, 'pieces'> & { writtenAt: number | null };

/** Poll interval, and so the shortest interval between outputs of a task. */
const EVERY_MS = 500;
/** An unfinished line, possibly a question, is emitted after this much silence. */
const UNFINISHED_MS = 1_000;
/** Skipped output is emitted after this much silence. */
const QUIET_MS = 2_000;
/** Above this queue age, output of running tasks stays in its file. */
const LONGEST_WAIT_MS = 2_000;
/** Above this queue length, so does output of ended tasks. */
const MOST_WAITING_AT_END = 1_000;
/** Bytes per poll, shared evenly among tasks; a share fills at least a card. */
const BYTES_AT_ONCE = 64 * 1024;
const LEAST_SHARE = 2 * 1024;
const MAX_TASKS = 5_000;
const CURSOR = 'task-output:';

export class TaskOutputs {
  readonly #options: TaskOutputsOptions;
  /** By cursor name, longest waiting first. */
  readonly #tailed = new Map<string, TailedTask>();
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #polling: Promise<void> = Promise.resolve();
  #isPollPending = false;
  #isClosed = false;
  #closeNow: () => void = () => {};
  /** Resolves on close: nothing waits for the disk any more. */
  readonly #closed = new Promise<void>((resolve) => {
    this.#closeNow = resolve;
  });

  constructor(options: TaskOutputsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Resumes the files of the previous process. @param open open work by session */
  async recall(
    outbox: { cursors: (prefix: string) => Promise<Map<string, string>> },
    open: ReadonlyMap<string, OpenWork>,
  ): Promise<void> {
    for (const [name, value] of await outbox.cursors(CURSOR)) {
      const [sessionId, taskId, runId] = parseJson(name.slice(CURSOR.length)) as [
        string,
        string,
        string | null,
        number,
      ];
      const { file, ...position } = parseJson(value) as OutputPosition & { file: string };
      const runs = open.get(sessionId)?.tasks.some((task) => task.id === taskId && mayMatch(task.runId, runId));
      this.#tail(name, { sessionId, taskId, runId, file, position, hasEnded: runs !== true, newAt: this.#now() });
    }
  }

  /** Observes emitted events of a session. */
  observe(sessionId: string, events: readonly TimedEvent[]): void {
    for (const { event } of events) {
      if (event.name === CUSTOM.sessionEnded) {
        for (const task of this.#tailed.values()) if (task.sessionId === sessionId) task.hasEnded = true;
        this.#poll();
      }
      if (typeof event.name !== 'string' || !event.name.startsWith('task:')) continue;
      const value = (event.value ?? {}) as Record<string, unknown>;
      const taskId = textOf(value.task_id);
      if (taskId !== null) this.#observeTask(sessionId, taskId, value, taskEndOf(event) !== null);
    }
  }

  /** Emits the rest of ended tasks. Running ones are left to the next process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeNow();
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#polling;
    for (const [name, task] of this.#tailed) if (task.hasEnded) await this.#emitRest(name, task);
  }

  #observeTask(sessionId: string, taskId: string, value: Record<string, unknown>, hasEnded: boolean): void {
    const runId = textOf(value.run_id);
    const file = textOf(value.output_file);
    const known = [...this.#tailed.values()].find(
      (one) => !one.hasEnded && one.sessionId === sessionId && one.taskId === taskId && mayMatch(one.runId, runId),
    );
    if (known !== undefined) {
      known.hasEnded = hasEnded;
      if (hasEnded) this.#poll();
      return;
    }
    // End events may come from any reporter, so they never name a file to read.
    if (file === null || hasEnded || !isAbsolute(file)) return;
    const name = CURSOR + JSON.stringify([sessionId, taskId, runId, this.#serial()]);
    this.#tail(name, { sessionId, taskId, runId, file, position: OUTPUT_START, hasEnded, newAt: this.#now() });
    if (this.#tailed.has(name)) void this.#options.store(sessionId, [], [cursorOf(name, file, OUTPUT_START)]);
  }

  /** Several runs may share a task id. */
  #serial(): number {
    let serial = this.#tailed.size;
    for (const name of this.#tailed.keys()) {
      const [, , , used] = parseJson(name.slice(CURSOR.length)) as [string, string, string | null, number];
      serial = Math.max(serial, used + 1);
    }
    return serial;
  }

  #tail(name: string, task: TailedTask): void {
    if (this.#tailed.size >= MAX_TASKS) {
      const error = `What it writes is not task: that of ${MAX_TASKS} other tasks is.`;
      void this.#emit(task, { pieces: [], writtenAt: null }, { name, value: null }, { text: '', ended: true, error });
      return;
    }
    this.#options.log(`tailing output of task ${task.taskId} in ${task.file}`);
    this.#tailed.set(name, task);
    this.#timer ??= setInterval(() => this.#poll(), this.#options.everyMs ?? EVERY_MS);
  }

  /** Polls every file once; one poll at a time. */
  #poll(): void {
    if (this.#isPollPending) return;
    this.#isPollPending = true;
    this.#polling = this.#polling
      .then(() => {
        this.#isPollPending = false;
        return this.#pollAll();
      })
      .catch((error) => this.#options.log(`polling output files failed: ${error}`));
  }

  async #pollAll(): Promise<void> {
    let room = BYTES_AT_ONCE;
    const { records, oldestAgeMs } = await this.#options.backlog();
    for (const [name, task] of [...this.#tailed]) {
      if (this.#isClosed || room <= 0) return;
      if (task.hasEnded ? records > MOST_WAITING_AT_END : oldestAgeMs > LONGEST_WAIT_MS) continue;
      const emitted = task.hasEnded ? await this.#emitRest(name, task) : await this.#emitNew(name, task);
      room -= emitted;
      if (emitted === 0 || !this.#tailed.delete(name)) continue;
      // Tasks with output move to the end of the line.
      this.#tailed.set(name, task);
    }
    if (this.#tailed.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** @returns emitted bytes */
  async #emitNew(name: string, task: TailedTask): Promise<number> {
    const quietMs = this.#now() - task.newAt;
    const mode = quietMs >= QUIET_MS ? 'kept' : quietMs >= UNFINISHED_MS ? 'rest' : 'live';
    const share = Math.min(MOST_LIVE, Math.max(LEAST_SHARE, Math.floor(BYTES_AT_ONCE / this.#tailed.size)));
    const { file, position: before } = task;
    const read = await readOutput(file, before, mode, this.#options.redactor, share).catch((error) => {
      // A missing file may still appear; something other than a regular file never has output.
      if (isNotRegularFile(error) && before.to === 0) this.#drop(name, task);
      else if (isNotRegularFile(error)) task.hasEnded = true;
      return null;
    });
    if (read === null) return 0;
    if (read.pieces.length > 0) task.newAt = this.#now();
    task.position = read.position;
    return this.#emit(task, read, cursorOf(name, file, read.position));
  }

  /** Emits everything not yet emitted and stops tailing the file. */
  async #emitRest(name: string, task: TailedTask): Promise<number> {
    const { file, position } = task;
    this.#tailed.delete(name);
    let read: ReadPieces = { pieces: [], writtenAt: null };
    const end: Omit<TaskOutputValue, 'task_id'> = { text: '', ended: true };
    try {
      read = await readOutput(file, position, 'end', this.#options.redactor);
    } catch (error) {
      // something other than a file never had output
      if (isNotRegularFile(error) && position.to === 0) return this.#emit(task, read, { name, value: null });
      end.error = `The rest of ${file} could not be read (${codeOf(error)}).`;
    }
    const isEmpty = position.to === 0 && read.pieces.length === 0 && end.error === undefined;
    return this.#emit(task, read, { name, value: null }, isEmpty ? null : end);
  }

  async #emit(
    { sessionId, taskId, runId }: TailedTask,
    { pieces, writtenAt }: ReadPieces,
    cursor: Cursor,
    end: Omit<TaskOutputValue, 'task_id'> | null = null,
  ): Promise<number> {
    const parts = [...pieces, ...(end === null ? [] : [end])];
    const occurredAt = this.#now();
    const events = parts.map(({ redacted, ...piece }): TimedEvent => {
      const about = { task_id: taskId, ...(runId === null ? {} : { run_id: runId }) };
      const written = piece.text === '' || writtenAt === null ? {} : { written_at: writtenAt };
      const value: TaskOutputValue = { ...about, ...piece, ...(redacted ? { redacted } : {}), ...written };
      return { occurredAt, event: { type: 'CUSTOM', name: CUSTOM.taskOutput, value } };
    });
    if (events.length > 0 || cursor.value === null) {
      await Promise.race([this.#options.store(sessionId, events, [cursor]), this.#closed]);
    }
    return pieces.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  #drop(name: string, { sessionId }: TailedTask): void {
    this.#tailed.delete(name);
    void this.#options.store(sessionId, [], [{ name, value: null }]);
  }
}

function cursorOf(name: string, file: string, position: OutputPosition): Cursor {
  return { name, value: JSON.stringify({ file, ...position }) };
}

/** An agent may name the run later than the task. */
function mayMatch(runId: string | null, other: string | null): boolean {
  return runId === null || other === null || runId === other;
}

/** The path is a link, a folder or a pipe. */
function isNotRegularFile(error: unknown): boolean {
  return error instanceof NotAFileError || codeOf(error) === 'ELOOP' || codeOf(error) === 'ENXIO';
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
