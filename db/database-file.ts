import { randomUUID } from 'node:crypto';
import { type BigIntStats, closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { LibsqlError } from '@libsql/client';

/**
 * The file that was opened as the database. SQLite goes on writing to a file that was deleted or replaced, and past the
 * end of a log that was cut short, and all of that is gone when the process ends. Only looking at the path shows it.
 */
export class DatabaseFile {
  readonly #path: string;
  readonly #log: string;
  /** The paths that must still lead to the files they first led to. */
  readonly #watched: ReadonlySet<string>;
  readonly #knowsFrames: () => Promise<boolean>;
  readonly #onCut: () => Promise<void>;
  /** By path, the file that was first seen there: the database, and the log that SQLite keeps beside it. */
  readonly #known = new Map<string, string>();
  #lastLog: LogState = { header: '', bytes: 0 };
  #isLogCut = false;
  /** The database has had its first page written. */
  #isBegun = false;
  #isEmptied = false;

  /**
   * @param knowsFrames whether SQLite thinks that something is in the log; asked only while the log is empty
   * @param onCut is told once that the log was cut short
   * @param name the path at which the next start looks for it, which may be a link
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

  /** Copying the log into the file now would spoil what is left of either. */
  get isPartGone(): boolean {
    return this.#isLogCut || this.#isEmptied;
  }

  /** The file is still the same and only its log is gone: this process can still read what that held. */
  lacksOnlyItsLog(): boolean {
    const known = this.#known.get(this.#path);
    try {
      return known !== undefined && known === identityOf(this.#path) && identityOf(this.#log) === null;
    } catch {
      return false;
    }
  }

  /** @throws LibsqlError if the file was emptied: SQLite deletes the log of an empty file that it opens */
  requireContent(): void {
    const found = this.#isBegun ? statSync(this.#path, { throwIfNoEntry: false }) : undefined;
    if (found?.size === 0) throw new LibsqlError('the file was emptied', 'SQLITE_IOERR');
  }

  /** Like `trouble`, but only for what others did to the files. Takes microseconds, so it runs before every commit. */
  async changed(): Promise<string | null> {
    try {
      return await this.#changed();
    } catch (error) {
      // too many open files, a failing disk: a path that can't be checked may lead to another file by now
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

  /** Call after each commit: what it added to the log must still be there at the next check. Never throws. */
  committed(): void {
    try {
      const now = logState(this.#log);
      if (LOG_HEADER.test(now.header)) this.#lastLog = now;
    } catch {
      // The commit stands even if the file can't be checked. The next check says what is wrong.
    }
  }

  /**
   * What SQLite itself does to a log: it restarts it with a new header, shortens a long one only after that, and
   * empties one once it no longer needs the content. A log without a header, as after a power cut, does not count as a
   * log.
   */
  async #findsLogCut(): Promise<boolean> {
    const last = this.#lastLog;
    const now = logState(this.#log);
    if (now.bytes === 0) {
      if (!this.#known.has(this.#log) || !(await this.#knowsFrames())) return false;
      // what was written since the check says nothing
      return logState(this.#log).bytes === 0;
    }
    if (!LOG_HEADER.test(now.header)) return last.header !== '';
    this.#lastLog = now;
    return now.header === last.header && now.bytes < last.bytes && now.bytes < MAX_IDLE_LOG_BYTES;
  }
}

/** A longer log is cut down to this: a few of the largest transactions, so that it seldom happens. */
export const MAX_IDLE_LOG_BYTES = 32 * 1024 * 1024;

interface LogState {
  /** In hexadecimal; empty if the log is empty or missing. */
  header: string;
  bytes: number;
}

/** @see https://sqlite.org/walformat.html 2.1 */
const LOG_HEADER_BYTES = 32;
const LOG_HEADER = /^377f068[23][0-9a-f]{56}$/;

/**
 * Both at one moment. Closing this file drops no lock: SQLite holds locks on the other two files, but not on this one.
 */
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

/**
 * SQLite keeps the newest commits in a log beside the database (`-wal`) and at the next start applies whatever log it
 * finds there. If the file was replaced by a backup meanwhile, that spoils the backup. So a note says which two files
 * belong together, and a log left behind by another database is set aside before anything is opened.
 *
 * Ordering: the note is written before the first commit, so an older note never describes a log that has commits in it.
 * Failure: nothing is deleted. If the note does not apply (there is none yet, the folder was copied or mounted
 * elsewhere, the file system renumbers its files) the log counts as the database's own, as it does for SQLite. A backup
 * that was copied into the same file (`cp`) can't be told from the original.
 *
 * @see https://sqlite.org/howtocorrupt.html 1.4
 */
interface Note {
  folder: Identity;
  database: Identity;
  /** Null if there was none. */
  log: Identity | null;
  /** Another program has cut it short: what is left is older than what the database has already taken from it. */
  isLogCut: boolean;
}

const LEFT_MS = 60_000;

/** What identifies a file across restarts: not its name, content or device, whose number may change each time. */
interface Identity {
  inode: string;
  bornAt: string;
}

/** Sets aside a log that is not the database's own, and says so. Call before the database is opened. */
export async function setAsideForeignLog(path: string): Promise<void> {
  // in this order: a log has no content before the database has its first page
  const log = await statIfPresent(`${path}-wal`);
  if (log === null || log.size === 0n) return;
  const database = await statIfPresent(path);
  const reason = database === null || database.size === 0n ? 'gone' : await reasonOf(path, database, log);
  if (reason === null) return;
  const mark = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const aside = `${path}-wal-set-aside-${mark}`;
  await rename(`${path}-wal`, aside);
  await rename(`${path}-shm`, `${path}-shm-set-aside-${mark}`).catch(ignoreMissing);
  serverLog('warn', `${REASONS[reason](path)} and was set aside as ${aside}. ${NEXT_STEP}`);
}

/** Notes that the files there now belong together. Call before anything is written to them. */
export async function noteFiles(path: string, isLogCut = false): Promise<void> {
  const [folder, database, log] = await Promise.all([
    statIfPresent(dirname(path)),
    statIfPresent(path),
    statIfPresent(`${path}-wal`),
  ]);
  if (folder === null || database === null) return;
  const identified = { folder: fileIdentity(folder), database: fileIdentity(database), log: log && fileIdentity(log) };
  const text = `${JSON.stringify({ ...identified, isLogCut } satisfies Note)}\n`;
  const name = noteOf(path);
  if ((await readFile(name, 'utf8').catch(() => null)) === text) return;
  // all of the note or nothing
  await removeLeft(name);
  const draft = `${name}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, name);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Drafts of a note whose writer was killed: writing one takes no time. */
async function removeLeft(note: string): Promise<void> {
  for (const name of await readdir(dirname(note))) {
    if (!name.startsWith(`${basename(note)}.`)) continue;
    const draft = join(dirname(note), name);
    const found = await stat(draft).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > LEFT_MS) await rm(draft, { force: true });
  }
}

type Reason = 'gone' | 'replaced' | 'cut';

const REASONS: Record<Reason, (path: string) => string> = {
  gone: (path) => `${path} is gone; the log ${path}-wal, which was its own, would go with it`,
  replaced: (path) =>
    `${path} is another file than the one that was open last; the log ${path}-wal belongs to that one, would spoil this one,`,
  cut: (path) => `the log ${path}-wal was cut short by another program, would spoil the database`,
};

const NEXT_STEP =
  'It holds what was stored last and not yet taken over into the old file: remove it once nothing of that is missed.';

async function reasonOf(path: string, database: BigIntStats, log: BigIntStats): Promise<Reason | null> {
  const [note, folder] = await Promise.all([readNote(path), statIfPresent(dirname(path))]);
  if (note?.log == null || folder === null) return null;
  if (!isSame(note.folder, folder) || !isSame(note.log, log)) return null;
  if (!isSame(note.database, database)) return 'replaced';
  return note.isLogCut ? 'cut' : null;
}

const noteOf = (path: string) => `${path}-opened`;

async function readNote(path: string): Promise<Note | null> {
  try {
    const { folder, database, log, isLogCut } = JSON.parse(await readFile(noteOf(path), 'utf8')) as Partial<Note>;
    return folder && database ? { folder, database, log: log ?? null, isLogCut: isLogCut === true } : null;
  } catch {
    return null;
  }
}

function fileIdentity({ ino, birthtimeNs }: BigIntStats): Identity {
  return { inode: String(ino), bornAt: String(birthtimeNs) };
}

/** A deleted file's number may be reused, so its birth time counts too, if the system knows it. */
function isSame(known: Identity, found: BigIntStats): boolean {
  const { inode, bornAt } = fileIdentity(found);
  const isBirthKnown = found.birthtimeNs !== found.ctimeNs;
  return inode === known.inode && (bornAt === known.bornAt || !isBirthKnown);
}

async function statIfPresent(path: string): Promise<BigIntStats | null> {
  return stat(path, { bigint: true }).catch(ignoreMissing);
}

function ignoreMissing(error: { code?: string }): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
