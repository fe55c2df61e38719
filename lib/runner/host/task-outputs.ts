import { isAbsolute } from 'node:path';
import { CUSTOM, type TaskOutputValue, type TimedEvent } from '@interlude/protocol/ag-ui';
import { parseJson, textOf } from '@interlude/protocol/fields';
import type { OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { taskEndTold } from '@interlude/protocol/task-end';
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
 * Follows the output files of the tasks that run, and tells what is written there.
 *
 * Ordering: what a task wrote is told behind its start and in the file's order; the last of it behind its end. While much
 * waits to be sent, nothing is read: events go first, and the file keeps what is written.
 * Failure: how far a file was told is stored with what was told of it, so the next process goes on there. A file that
 * can't be read any more is told as such. Only a source's own word for where a running task writes is followed.
 */
export interface TaskOutputsOptions {
  /** Stores records and cursors in one transaction. */
  store: (sessionId: string, events: readonly TimedEvent[], cursors: readonly Cursor[]) => Promise<void>;
  /** How many records wait to be sent, and for how long the first of them has: 0 where few do. */
  backlog: () => Promise<{ records: number; oldestAgeMs: number }>;
  redactor: Redactor;
  log: (message: string) => void;
  everyMs?: number;
  now?: () => number;
}

/** One run of a task, whose output is followed. */
interface FollowedFile {
  sessionId: string;
  taskId: string;
  runId: string | null;
  file: string;
  place: OutputPosition;
  hasEnded: boolean;
  /** When the file last had anything new. */
  newAt: number;
}

/** What was read of a file. */
type ReadPieces = Pick<OutputRead, 'pieces'> & { writtenAt: number | null };

/** How often files are looked at: at most so often does a task tell anything. */
const EVERY_MS = 500;
/** An unfinished line is told once nothing has followed it for so long: it may be a question. */
const UNFINISHED_MS = 1_000;
/** What was passed over is told once a task has been quiet for so long. */
const QUIET_MS = 2_000;
/** Where records have waited for so long, what a running task writes is left in its file. */
const LONGEST_WAIT_MS = 2_000;
/** And with more records than this in front of it, what one that has ended wrote. */
const MOST_WAITING_AT_END = 1_000;
/** What all tasks together tell at one look, in even shares that hold what a card shows. */
const BYTES_AT_ONCE = 64 * 1024;
const LEAST_SHARE = 2 * 1024;
/** Most files that are followed. */
const MOST_FOLLOWED = 5_000;
const CURSOR = 'task-output:';

export class TaskOutputs {
  readonly #options: TaskOutputsOptions;
  /** By the name of its cursor. The one that waits longest is first. */
  readonly #followed = new Map<string, FollowedFile>();
  readonly #now: () => number;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isAsked = false;
  #isClosed = false;
  #closeNow: () => void = () => {};
  /** From then on nobody waits for the disk: whoever stores keeps what is handed over. */
  readonly #closed = new Promise<void>((resolve) => {
    this.#closeNow = resolve;
  });

  constructor(options: TaskOutputsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Goes on with what the process before this one followed. @param open what its sessions had open */
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
      const { file, ...place } = parseJson(value) as OutputPosition & { file: string };
      const runs = open.get(sessionId)?.tasks.some((task) => task.id === taskId && mayMatch(task.runId, runId));
      this.#follow(name, { sessionId, taskId, runId, file, place, hasEnded: runs !== true, newAt: this.#now() });
    }
  }

  /** A session's events, which have just been handed over. */
  observe(sessionId: string, events: readonly TimedEvent[]): void {
    for (const { event } of events) {
      if (event.name === CUSTOM.sessionEnded) {
        for (const followed of this.#followed.values()) if (followed.sessionId === sessionId) followed.hasEnded = true;
        this.#look();
      }
      if (typeof event.name !== 'string' || !event.name.startsWith('task:')) continue;
      const value = (event.value ?? {}) as Record<string, unknown>;
      const taskId = textOf(value.task_id);
      if (taskId !== null) this.#observeTask(sessionId, taskId, value, taskEndTold(event) !== null);
    }
  }

  /** Tells the rest of what has ended. What goes on is for the next process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeNow();
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
    for (const [name, followed] of this.#followed) if (followed.hasEnded) await this.#tellRest(name, followed);
  }

  #observeTask(sessionId: string, taskId: string, value: Record<string, unknown>, hasEnded: boolean): void {
    const runId = textOf(value.run_id);
    const file = textOf(value.output_file);
    const known = [...this.#followed.values()].find(
      (one) => !one.hasEnded && one.sessionId === sessionId && one.taskId === taskId && mayMatch(one.runId, runId),
    );
    if (known !== undefined) {
      known.hasEnded = hasEnded;
      if (hasEnded) this.#look();
      return;
    }
    // What tells of an end is no word about files: anybody may have said it.
    if (file === null || hasEnded || !isAbsolute(file)) return;
    const name = CURSOR + JSON.stringify([sessionId, taskId, runId, this.#serial()]);
    this.#follow(name, { sessionId, taskId, runId, file, place: OUTPUT_START, hasEnded, newAt: this.#now() });
    if (this.#followed.has(name)) void this.#options.store(sessionId, [], [cursorOf(name, file, OUTPUT_START)]);
  }

  /** The same id may be that of several runs. */
  #serial(): number {
    let serial = this.#followed.size;
    for (const name of this.#followed.keys()) {
      const [, , , used] = parseJson(name.slice(CURSOR.length)) as [string, string, string | null, number];
      serial = Math.max(serial, used + 1);
    }
    return serial;
  }

  #follow(name: string, followed: FollowedFile): void {
    if (this.#followed.size >= MOST_FOLLOWED) {
      const error = `What it writes is not followed: that of ${MOST_FOLLOWED} other tasks is.`;
      void this.#tell(
        followed,
        { pieces: [], writtenAt: null },
        { name, value: null },
        { text: '', ended: true, error },
      );
      return;
    }
    this.#options.log(`follows the output of task ${followed.taskId} in ${followed.file}`);
    this.#followed.set(name, followed);
    this.#timer ??= setInterval(() => this.#look(), this.#options.everyMs ?? EVERY_MS);
  }

  /** Looks at every file once, one look at a time. */
  #look(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#looking = this.#looking
      .then(() => {
        this.#isAsked = false;
        return this.#lookAtAll();
      })
      .catch((error) => this.#options.log(`a look at the output files failed: ${error}`));
  }

  async #lookAtAll(): Promise<void> {
    let room = BYTES_AT_ONCE;
    const { records, oldestAgeMs } = await this.#options.backlog();
    for (const [name, followed] of [...this.#followed]) {
      if (this.#isClosed || room <= 0) return;
      if (followed.hasEnded ? records > MOST_WAITING_AT_END : oldestAgeMs > LONGEST_WAIT_MS) continue;
      const told = followed.hasEnded ? await this.#tellRest(name, followed) : await this.#tellNew(name, followed);
      room -= told;
      if (told === 0 || !this.#followed.delete(name)) continue;
      // Whoever has told something is last in line.
      this.#followed.set(name, followed);
    }
    if (this.#followed.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** @returns how many bytes of the file were told */
  async #tellNew(name: string, followed: FollowedFile): Promise<number> {
    const quietMs = this.#now() - followed.newAt;
    const reach = quietMs >= QUIET_MS ? 'kept' : quietMs >= UNFINISHED_MS ? 'rest' : 'live';
    const share = Math.min(MOST_LIVE, Math.max(LEAST_SHARE, Math.floor(BYTES_AT_ONCE / this.#followed.size)));
    const { file, place: before } = followed;
    const read = await readOutput(file, before, reach, this.#options.redactor, share).catch((error) => {
      // One that is not there yet may come; what is no file never has anything to tell, or not any more.
      if (isNotRegularFile(error) && before.to === 0) this.#letGo(name, followed);
      else if (isNotRegularFile(error)) followed.hasEnded = true;
      return null;
    });
    if (read === null) return 0;
    if (read.pieces.length > 0) followed.newAt = this.#now();
    followed.place = read.place;
    return this.#tell(followed, read, cursorOf(name, file, read.place));
  }

  /** All that is kept and was not told. It is not followed any more. */
  async #tellRest(name: string, followed: FollowedFile): Promise<number> {
    const { file, place } = followed;
    this.#followed.delete(name);
    let read: ReadPieces = { pieces: [], writtenAt: null };
    const end: Omit<TaskOutputValue, 'task_id'> = { text: '', ended: true };
    try {
      read = await readOutput(file, place, 'end', this.#options.redactor);
    } catch (error) {
      // what was no file never had anything to tell
      if (isNotRegularFile(error) && place.to === 0) return this.#tell(followed, read, { name, value: null });
      end.error = `The rest of ${file} could not be read (${codeOf(error)}).`;
    }
    const isSilent = place.to === 0 && read.pieces.length === 0 && end.error === undefined;
    return this.#tell(followed, read, { name, value: null }, isSilent ? null : end);
  }

  async #tell(
    { sessionId, taskId, runId }: FollowedFile,
    { pieces, writtenAt }: ReadPieces,
    cursor: Cursor,
    end: Omit<TaskOutputValue, 'task_id'> | null = null,
  ): Promise<number> {
    const said = [...pieces, ...(end === null ? [] : [end])];
    const occurredAt = this.#now();
    const events = said.map(({ redacted, ...piece }): TimedEvent => {
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

  #letGo(name: string, { sessionId }: FollowedFile): void {
    this.#followed.delete(name);
    void this.#options.store(sessionId, [], [{ name, value: null }]);
  }
}

function cursorOf(name: string, file: string, place: OutputPosition): Cursor {
  return { name, value: JSON.stringify({ file, ...place }) };
}

/** Whether two names of a run may mean the same: an agent may name it later than the task. */
function mayMatch(runId: string | null, other: string | null): boolean {
  return runId === null || other === null || runId === other;
}

/** What stands under the name of the output is something else: a link, a folder, a pipe. */
function isNotRegularFile(error: unknown): boolean {
  return error instanceof NotAFileError || codeOf(error) === 'ELOOP' || codeOf(error) === 'ENXIO';
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
