import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LibsqlError } from '@libsql/client';
import { MAX_RECORD_BYTES } from '@/lib/protocol/limits';

/**
 * The file a database was opened as. SQLite goes on writing to a file that was deleted or replaced under it, and behind
 * the end of a log that was cut short, and all of that is gone when the process ends: only a look at the path tells.
 */
export class DatabaseFile {
  readonly #path: string;
  readonly #log: string;
  /** All that must lead to what it led to when it was first seen. */
  readonly #watched: ReadonlySet<string>;
  readonly #knowsFrames: () => Promise<boolean>;
  readonly #onCut: () => Promise<void>;
  /** By path, what stood there when it was first seen: the database, and the log SQLite keeps beside it. */
  readonly #known = new Map<string, string>();
  #lastLog: LogState = { header: '', bytes: 0 };
  #isLogCut = false;
  /** It has had its first page. */
  #isBegun = false;
  #isEmptied = false;

  /**
   * @param knowsFrames whether SQLite thinks that something is in the log; asked only while the log is empty
   * @param onCut is told once that the log was cut short
   * @param name by what the next start will look for it: a link to it, maybe
   */
  constructor(path: string, knowsFrames: () => Promise<boolean>, onCut: () => Promise<void>, name = path) {
    this.#path = path;
    this.#log = `${path}-wal`;
    this.#watched = new Set([name, path, this.#log]);
    this.#knowsFrames = knowsFrames;
    this.#onCut = onCut;
  }

  /** @returns what is wrong, as the end of a sentence about the database; null when nothing is */
  async trouble(): Promise<string | null> {
    const changed = await this.changed();
    if (changed !== null) return changed;
    const { bavail, bsize } = await statfs(dirname(this.#path));
    return bavail * bsize < MAX_RECORD_BYTES ? 'its disk is full' : null;
  }

  /** What is left of the log, or of the file, would be spoiled, if the one were brought into the other. */
  get isPartGone(): boolean {
    return this.#isLogCut || this.#isEmptied;
  }

  /** The file is the one it was, and only the log beside it is gone: what that held is still to be had from this process. */
  lacksOnlyItsLog(): boolean {
    const known = this.#known.get(this.#path);
    try {
      return known !== undefined && known === identityOf(this.#path) && identityOf(this.#log) === null;
    } catch {
      return false;
    }
  }

  /** @throws LibsqlError where the file was emptied: SQLite drops the log of one that it opens so */
  requireContent(): void {
    const found = this.#isBegun ? statSync(this.#path, { throwIfNoEntry: false }) : undefined;
    if (found?.size === 0) throw new LibsqlError('the file was emptied', 'SQLITE_IOERR');
  }

  /** As `trouble`, but only of what others did to the files. It takes microseconds, so it is asked before every commit. */
  async changed(): Promise<string | null> {
    try {
      return await this.#changed();
    } catch (error) {
      // too many open files, a disk that fails: what can't be looked at may be another file by now
      return `its files can't be looked at (${error instanceof Error ? error.message : error})`;
    }
  }

  async #changed(): Promise<string | null> {
    for (const path of this.#watched) {
      const known = this.#known.get(path);
      const now = identityOf(path);
      if (known === undefined && now !== null) this.#known.set(path, now);
      if (known !== undefined && now === null) return `its file ${path} was deleted`;
      if (known !== undefined && now !== known) return `its file ${path} was replaced by another`;
    }
    const { size } = statSync(this.#path);
    this.#isEmptied = this.#isBegun && size === 0;
    this.#isBegun ||= size > 0;
    if (this.#isEmptied) return `its file ${this.#path} was emptied by another program`;
    if (!this.#isLogCut && (await this.#findsLogCut())) {
      this.#isLogCut = true;
      await this.#onCut().catch(() => undefined);
    }
    return this.#isLogCut ? `its log ${this.#log} was cut short by another program, and what it held is lost` : null;
  }

  /** To be called after each commit: what it has put into the log must be there at the next look. Never throws. */
  committed(): void {
    try {
      const now = logState(this.#log);
      if (LOG_HEADER.test(now.header)) this.#lastLog = now;
    } catch {
      // What is committed is, whatever can be seen of it. The next look says what is wrong.
    }
  }

  /**
   * What SQLite itself does to a log: it begins it anew with another header, makes a long one shorter only behind that,
   * and empties one after it has forgotten what was in it. A log in which a power cut has left no header is none to it.
   */
  async #findsLogCut(): Promise<boolean> {
    const last = this.#lastLog;
    const now = logState(this.#log);
    if (now.bytes === 0) {
      if (!this.#known.has(this.#log) || !(await this.#knowsFrames())) return false;
      // what was written since the look is no sign of anything
      return logState(this.#log).bytes === 0;
    }
    if (!LOG_HEADER.test(now.header)) return last.header !== '';
    this.#lastLog = now;
    return now.header === last.header && now.bytes < last.bytes && now.bytes < MAX_IDLE_LOG_BYTES;
  }
}

/** What a log is cut down to that had to grow beyond it: a few of the largest transactions, so that it seldom happens. */
export const MAX_IDLE_LOG_BYTES = 32 * 1024 * 1024;

interface LogState {
  /** In hexadecimal; empty for a log that is empty, or not there. */
  header: string;
  bytes: number;
}

/** @see https://sqlite.org/walformat.html 2.1 */
const LOG_HEADER_BYTES = 32;
const LOG_HEADER = /^377f068[23][0-9a-f]{56}$/;

/** Of one moment. Closing this file lets go of no lock: SQLite has none on it, as it has on the other two. */
function logState(path: string): LogState {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return { header: '', bytes: 0 };
  const file = openSync(path, 'r');
  try {
    for (let header = headerOf(file); ; ) {
      const bytes = fstatSync(file).size;
      const after = headerOf(file);
      if (after === header) return { header, bytes };
      header = after;
    }
  } finally {
    closeSync(file);
  }
}

function headerOf(file: number): string {
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  return header.toString('hex', 0, readSync(file, header, 0, LOG_HEADER_BYTES, 0));
}

function identityOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev} ${found.ino}`;
}
