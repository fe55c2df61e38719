import { randomUUID } from 'node:crypto';
import { type BigIntStats, closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { LibsqlError } from '@libsql/client';

/**
 * Watches the file that was opened as the database. SQLite continues to write to a deleted or replaced file, and past
 * the end of a truncated log. These writes are lost when the process ends. Only a check of the path detects this.
 */
export class DatabaseFile {
  readonly #path: string;
  readonly #log: string;
  /** Paths that must keep pointing to the same files. */
  readonly #watched: ReadonlySet<string>;
  readonly #hasLogFrames: () => Promise<boolean>;
  readonly #onTruncated: () => Promise<void>;
  /** Identity of the file first seen at each path. */
  readonly #known = new Map<string, string>();
  #lastLog: LogState = { header: '', bytes: 0 };
  #isLogTruncated = false;
  /** The first page has been written. */
  #hasContent = false;
  #isEmptied = false;

  /**
   * @param hasLogFrames returns true if SQLite believes that the log has content; called only while the log is empty
   * @param onTruncated called once
   * @param name path at which the next start looks for the database, which may be a link
   */
  constructor(path: string, hasLogFrames: () => Promise<boolean>, onTruncated: () => Promise<void>, name = path) {
    this.#path = path;
    this.#log = `${path}-wal`;
    this.#watched = new Set([name, path, this.#log]);
    this.#hasLogFrames = hasLogFrames;
    this.#onTruncated = onTruncated;
  }

  /** @returns the problem as a clause, such as “its disk is full”; null for none */
  async trouble(): Promise<string | null> {
    const changed = await this.changed();
    if (changed !== null) return changed;
    const { bavail, bsize } = await statfs(dirname(this.#path));
    return bavail * bsize < MAX_RECORD_BYTES ? 'its disk is full' : null;
  }

  /** Checkpointing now would corrupt the rest of the file or the log. */
  get isPartGone(): boolean {
    return this.#isLogTruncated || this.#isEmptied;
  }

  /** Only the log was deleted, and this process can still read it. */
  lacksOnlyItsLog(): boolean {
    const known = this.#known.get(this.#path);
    try {
      return known !== undefined && known === identityOf(this.#path) && identityOf(this.#log) === null;
    } catch {
      return false;
    }
  }

  /** @throws LibsqlError if the file was emptied: opening it again would delete its log */
  requireContent(): void {
    const found = this.#hasContent ? statSync(this.#path, { throwIfNoEntry: false }) : undefined;
    if (found?.size === 0) throw new LibsqlError('the file was emptied', 'SQLITE_IOERR');
  }

  /**
   * Like `trouble`, but only checks for changes by other programs. Takes microseconds, so it runs before every commit.
   */
  async changed(): Promise<string | null> {
    try {
      return await this.#changed();
    } catch (error) {
      // Too many open files, or a failing disk: the path may point to another file by now.
      return `its files can't be checked (${error instanceof Error ? error.message : error})`;
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
    this.#isEmptied = this.#hasContent && size === 0;
    this.#hasContent ||= size > 0;
    if (this.#isEmptied) return `its file ${this.#path} was emptied by another program`;
    if (!this.#isLogTruncated && (await this.#findsTruncatedLog())) {
      this.#isLogTruncated = true;
      await this.#onTruncated().catch(() => undefined);
    }
    return this.#isLogTruncated
      ? `its log ${this.#log} was truncated by another program, and its content is lost`
      : null;
  }

  /**
   * Records the log's state. Call after each commit, or the next check takes its log entries for another program's.
   * Never throws.
   */
  committed(): void {
    try {
      const now = logState(this.#log);
      if (LOG_HEADER.test(now.header)) this.#lastLog = now;
    } catch {
      // The commit is valid even if the file can't be checked. The next check reports it.
    }
  }

  /**
   * Distinguishes truncation from SQLite's own changes: SQLite restarts a log with a new header, shortens a long one only after
   * that, and empties one whose content it no longer needs. A log without a header, as after a power loss, does not count.
   */
  async #findsTruncatedLog(): Promise<boolean> {
    const last = this.#lastLog;
    const now = logState(this.#log);
    if (now.bytes === 0) {
      if (!this.#known.has(this.#log) || !(await this.#hasLogFrames())) return false;
      // The log can grow during the check.
      return logState(this.#log).bytes === 0;
    }
    if (!LOG_HEADER.test(now.header)) return last.header !== '';
    this.#lastLog = now;
    return now.header === last.header && now.bytes < last.bytes && now.bytes < MAX_IDLE_LOG_BYTES;
  }
}

/** SQLite truncates a longer log to this size. It fits a few of the largest transactions, so SQLite seldom has to. */
export const MAX_IDLE_LOG_BYTES = 32 * 1024 * 1024;

interface LogState {
  /** Hexadecimal; empty for an empty or missing log. */
  header: string;
  bytes: number;
}

/** @see https://sqlite.org/walformat.html 2.1 */
const LOG_HEADER_BYTES = 32;
const LOG_HEADER = /^377f068[23][0-9a-f]{56}$/;

/** Reads header and size consistently. Closing this file releases no lock, because SQLite never locks the log file. */
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
 * SQLite keeps the newest commits in a log beside the database (`-wal`), and applies any log it finds at the next
 * start. If the file was replaced by a backup meanwhile, that corrupts the backup. So a note file records which files
 * belong together, and a log left behind by another database is moved aside before opening.
 *
 * Ordering: the note is written before the first commit, so an outdated note never describes a log with commits.
 * Failure: nothing is deleted. If the note does not apply (none yet, a copied or remounted folder, a file system that
 * renumbers files), the log counts as the database's own, as for SQLite. A backup copied into the same file (`cp`) can't be
 * distinguished from the original.
 *
 * @see https://sqlite.org/howtocorrupt.html 1.4
 */
interface Note {
  folder: Identity;
  database: Identity;
  /** Null if there was none. */
  log: Identity | null;
  /** Another program truncated the log: the rest is older than the commits that the database has. */
  isLogCut: boolean;
}

const STALE_DRAFT_MS = 60_000;

/** Identifies a file across restarts. Name, content and device number may change. */
interface Identity {
  inode: string;
  bornAt: string;
}

/** Moves aside a log that does not belong to the database, and logs a warning. Call before opening. */
export async function setAsideForeignLog(path: string): Promise<void> {
  // Order matters: a log is empty until the database has its first page.
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

/** Records that the present files belong together. Call before writing to them. */
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
  // Atomic: writes a draft and renames it.
  await removeStaleDrafts(name);
  const draft = `${name}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, name);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Removes drafts left by killed writers. */
async function removeStaleDrafts(note: string): Promise<void> {
  for (const name of await readdir(dirname(note))) {
    if (!name.startsWith(`${basename(note)}.`)) continue;
    const draft = join(dirname(note), name);
    const found = await stat(draft).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > STALE_DRAFT_MS) await rm(draft, { force: true });
  }
}

type Reason = 'gone' | 'replaced' | 'cut';

const REASONS: Record<Reason, (path: string) => string> = {
  gone: (path) => `${path} is missing; its log ${path}-wal would be deleted`,
  replaced: (path) => `${path} was replaced; the log ${path}-wal belongs to the previous file, would corrupt this one,`,
  cut: (path) => `the log ${path}-wal was truncated by another program, would corrupt the database`,
};

const NEXT_STEP =
  'It holds the last commits that are not in the previous file yet. Remove it once you are sure that nothing is missing.';

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

/** An inode may be reused, so the birth time is compared as well, if the file system records it. */
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
