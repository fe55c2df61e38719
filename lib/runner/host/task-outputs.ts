import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { TaskOutputValue, TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM, taskEndOf } from '@interlude/protocol/event-fields';
import { parseJson, textOf } from '@interlude/protocol/fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import { redactOutput, visibleText } from '@interlude/protocol/redaction/redacted-text';
import type { Redactor } from '../logger/redactor';
import type { Cursor } from '../outbox/statements';

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
/** Above this queue length, output of ended tasks stays there too. */
const MOST_WAITING_AT_END = 1_000;
/** Bytes per poll, shared evenly among tasks; a share fills at least a card. */
const BYTES_AT_ONCE = 64 * 1024;
const LEAST_SHARE = 2 * 1024;
const MAX_TASKS = 5_000;
const CURSOR = 'task-output:';

/**
 * Tails the output files of running tasks and emits what they write.
 *
 * Ordering: output comes after the start of its task and in file order; the final piece comes after the end. While many
 * records are unsent nothing is read: other events go first, and the file keeps the output.
 * Failure: the file position is stored with the emitted output, so the next process continues there. An unreadable file
 * is reported. Only paths that the source named for a running task are read.
 */
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
  /** Resolves on close, so that nothing waits for the disk any longer. */
  readonly #closed = new Promise<void>((resolve) => {
    this.#closeNow = resolve;
  });

  constructor(options: TaskOutputsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Resumes the files of the previous process. @param open open work by session */
  async restore(
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

  /** Next free number, because several runs may share a task id. */
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
      const error = `Its output is not shown, because the runner already follows ${MAX_TASKS} other tasks.`;
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
      .catch((error) => this.#options.log(`could not read task output files: ${error}; retrying`));
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
      // Tasks with output move to the end of the queue.
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

/** True unless both runs are named and differ: an agent may name the run later than the task. */
function mayMatch(runId: string | null, other: string | null): boolean {
  return runId === null || other === null || runId === other;
}

/** True if the path is a link, a folder or a pipe. */
function isNotRegularFile(error: unknown): boolean {
  return error instanceof NotAFileError || codeOf(error) === 'ELOOP' || codeOf(error) === 'ENXIO';
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

/** Position up to which an output file was emitted. */
interface OutputPosition {
  /** Inode of the file, which may be replaced; 0 before the first read. */
  ino: number;
  /** Everything from `wholeFrom` to `to` was emitted. */
  wholeFrom: number;
  to: number;
  /** Digest of the bytes before `to`, to detect a rewritten file. */
  mark: string;
}

export const OUTPUT_START: OutputPosition = { ino: 0, wholeFrom: 0, to: 0, mark: '' };

/** File content between two offsets, redacted. */
interface OutputPiece {
  from: number;
  to: number;
  text: string;
  redacted: number;
}

interface OutputRead {
  pieces: OutputPiece[];
  position: OutputPosition;
  /** Modification time, epoch milliseconds. */
  writtenAt: number;
}

/**
 * `live`: new whole lines, at most the newest `mostLive` bytes. `rest`: the same with unfinished lines. `kept`:
 * everything not yet emitted of the newest `MAX_TASK_OUTPUT_BYTES`; all of these bytes if an earlier piece was skipped.
 * `end`: like `kept`, for a complete file.
 */
export type ReadMode = 'live' | 'rest' | 'kept' | 'end';

const isLive = (mode: ReadMode) => mode === 'live' || mode === 'rest';

/** Default limit of one read while the task runs. */
export const MOST_LIVE = 32 * 1024;
/** Maximum bytes of a piece. In JSON, a byte may take six. */
const MOST_PIECE = 128 * 1024;
/** Bytes by which a secret may extend before and after a piece. Private keys are the longest. */
const LOOK_BEHIND = 64 * 1024;
const LOOK_AHEAD = 8 * 1024;
/** Bytes by which a start within a line may move to reach the next line. */
const LONG_LINE = 4 * 1024;
const MARKED_BYTES = 256;
const NEWLINE = 10;
const RETURN = 13;
// Never follows a link, and never blocks on a pipe.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface Reading {
  mode: ReadMode;
  most: number;
  size: number;
  redactor: Redactor;
}

/**
 * Reads new output of a task.
 *
 * Ordering: pieces are in file order. A piece that does not continue the previous one leaves a hole, or starts over
 * after the file shrank, was replaced or rewritten.
 * Failure: open and read errors are thrown, and the position stays. Invalid UTF-8 is decoded with replacement
 * characters.
 *
 * @throws NotAFileError if the path is not a regular file
 */
export async function readOutput(
  path: string,
  position: OutputPosition,
  mode: ReadMode,
  redactor: Redactor,
  mostLive = MOST_LIVE,
): Promise<OutputRead> {
  const file = await open(path, FLAGS);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new NotAFileError(path);
    const { ino, size, mtimeMs } = stat;
    const reading = { mode, most: isLive(mode) ? mostLive : MOST_PIECE, size, redactor };
    const known = (await isSame(file, position, ino, size)) ? { ...position, ino } : { ...OUTPUT_START, ino };
    const from = await startOf(file, known, reading);
    // All retained output was emitted, although the piece began at a line start.
    const wholeStart = isLive(mode) ? from : Math.min(from, Math.max(0, size - MAX_TASK_OUTPUT_BYTES));
    const wholeFrom = from === known.to ? known.wholeFrom : wholeStart;
    const pieces: OutputPiece[] = [];
    let at = from;
    while (at < size) {
      const piece = await readPiece(file, at, reading);
      if (piece === null) break;
      pieces.push(piece);
      at = piece.to;
    }
    const writtenAt = Math.round(mtimeMs);
    if (pieces.length === 0) return { pieces, position: known, writtenAt };
    return { pieces, position: { ino, wholeFrom, to: at, mark: await digestAt(file, at) }, writtenAt };
  } finally {
    await file.close();
  }
}

export class NotAFileError extends Error {
  override readonly name = 'NotAFileError';

  constructor(path: string) {
    super(`${path} is not a regular file`);
  }
}

async function isSame(file: FileHandle, position: OutputPosition, ino: number, size: number): Promise<boolean> {
  if ((position.ino !== 0 && position.ino !== ino) || size < position.to) return false;
  return position.to === 0 || (await digestAt(file, position.to)) === position.mark;
}

async function digestAt(file: FileHandle, at: number): Promise<string> {
  const bytes = await readBytes(file, Math.max(0, at - MARKED_BYTES), at);
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
}

async function startOf(file: FileHandle, position: OutputPosition, { mode, most, size }: Reading): Promise<number> {
  if (isLive(mode)) return size - position.to > most ? lineFrom(file, size - most, size) : position.to;
  const oldest = Math.max(0, size - MAX_TASK_OUTPUT_BYTES);
  if (position.wholeFrom <= oldest && position.to >= oldest) return position.to;
  return lineFrom(file, oldest, size);
}

/** Offset of the next line start; within a very long line, of the next character. */
async function lineFrom(file: FileHandle, from: number, size: number): Promise<number> {
  if (from === 0) return 0;
  const bytes = await readBytes(file, from - 1, Math.min(size, from + LONG_LINE));
  const newline = bytes.indexOf(NEWLINE);
  if (newline >= 0 && from + newline < size) return from + newline;
  let index = 1;
  while (index < 4 && isContinuationByte(bytes[index])) index += 1;
  return Math.min(size, from - 1 + index);
}

async function readPiece(file: FileHandle, from: number, reading: Reading): Promise<OutputPiece | null> {
  const { mode, most, size, redactor } = reading;
  const begin = Math.max(0, from - LOOK_BEHIND);
  const bytes = await readBytes(file, begin, Math.min(size, from + most + LOOK_AHEAD));
  const behind = bytes.subarray(0, Math.min(from - begin, bytes.length));
  const fresh = bytes.subarray(behind.length, behind.length + most);
  const ahead = bytes.subarray(behind.length + fresh.length);
  const isAll = from + fresh.length >= size;
  const end = isAll ? endOfAll(fresh, mode) : endOfLines(fresh);
  if (end === 0) return null;
  const { text, redacted } = redactOutput(redactor, {
    behind: behind.toString('utf8'),
    piece: fresh.toString('utf8', 0, end),
    ahead: fresh.toString('utf8', end) + ahead.toString('utf8'),
  });
  return { from, to: from + end, text, redacted };
}

/** Length of the finished lines; of a very long line, of its complete characters. */
function endOfLines(bytes: Buffer): number {
  const end = lastLineEnd(bytes);
  return end > 0 ? end : completeCharacters(bytes);
}

/** End of the last finished line; 0 if there is none. */
function lastLineEnd(bytes: Buffer): number {
  return Math.max(bytes.lastIndexOf(NEWLINE), bytes.lastIndexOf(RETURN)) + 1;
}

/** Length that may be emitted when the read reached the end of the file. */
function endOfAll(bytes: Buffer, mode: ReadMode): number {
  // a truncated character at the end of a complete file stays as it is
  if (mode === 'end') return bytes.length;
  const lines = lastLineEnd(bytes);
  const isLong = bytes.length - lines >= LONG_LINE;
  if (mode === 'live' && !isLong) return lines;
  return Math.max(lines, beforePartialWord(bytes, completeCharacters(bytes)));
}

/** Shorter words, and words that end like a prompt, may be emitted unfinished. */
const MIN_PARTIAL_WORD = 6;
const PROMPT_END = /[:?>\])]$/;

/** Length without a trailing word that may be half a secret. */
function beforePartialWord(bytes: Buffer, length: number): number {
  const least = Math.max(0, length - LOOK_AHEAD);
  let from = length;
  while (from > least && !WHITESPACE.has(bytes[from - 1] as number)) from -= 1;
  const word = visibleText(bytes.toString('utf8', from, length));
  return word.length < MIN_PARTIAL_WORD || PROMPT_END.test(word) ? length : from;
}

const WHITESPACE: ReadonlySet<number> = new Set([NEWLINE, RETURN, 0x20, 0x09]);

/** Length without a truncated character at the end. */
function completeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start >= 0 && start > bytes.length - 4 && isContinuationByte(bytes[start])) start -= 1;
  const first = bytes[start];
  if (first === undefined || first < 0xc0) return bytes.length;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return start + length > bytes.length ? start : bytes.length;
}

function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

async function readBytes(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}
