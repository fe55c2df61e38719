import { AppError } from '@interlude/protocol/errors';
import { LibsqlError } from '@libsql/client';
import { RetryTransaction } from './writes';

/**
 * Classifies database failures. Only this file distinguishes them.
 *
 * `soon`: the database is at fault, not the request (locked, full, unreachable, restarted): 503, and the same request
 * succeeds later. `refused`: the database will never accept this statement, so the record behind it must be
 * quarantined. `damaged`: the file can no longer be trusted.
 */
type DatabaseFault = 'soon' | 'refused' | 'damaged';

/**
 * The libSQL code (`SQLITE_BUSY`, `HRANA_WEBSOCKET_ERROR`, …) behind an error, however deep in `cause`. For an
 * unreachable libSQL server, the network's code (`ECONNREFUSED`, …) or `UNREACHABLE`, since `fetch` doesn't throw the
 * client's errors.
 *
 * @returns null if the error did not come from the database
 */
export function databaseErrorCode(error: unknown): string | null {
  let isNetwork = false;
  for (let link = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    // Next may load two copies of the client, and `instanceof` knows only one.
    const isClients = link instanceof LibsqlError || /^Libsql(Batch)?Error$/.test(link.name);
    const code = 'code' in link && typeof link.code === 'string' ? link.code : null;
    if (isClients && code !== null) return code;
    if (link instanceof TypeError && link.message === 'fetch failed') isNetwork = true;
    else if (isNetwork && code !== null) return code;
  }
  return isNetwork ? 'UNREACHABLE' : null;
}

const REFUSED = /^(SQLITE_(ERROR|TOOBIG|CONSTRAINT|MISMATCH|RANGE)|SQL_|ARGS_|RESPONSE_TOO_LARGE)/;
const DAMAGED = /^SQLITE_(CORRUPT|NOTADB)/;

/** @returns null if the error did not come from the database; an unknown code counts as temporary */
export function databaseFault(error: unknown): DatabaseFault | null {
  const code = databaseErrorCode(error);
  // A stored integer too large for JavaScript: the row will always fail.
  if (code === null) return error instanceof RangeError && /\binteger\b/.test(error.message) ? 'refused' : null;
  if (DAMAGED.test(code)) return 'damaged';
  return REFUSED.test(code) ? 'refused' : 'soon';
}

/**
 * True if the input is at fault: each retry would make the database refuse a statement, or make our own code throw.
 * Failures caused by the database, the machine or another process are temporary.
 */
export function isInputError(error: unknown): boolean {
  const fault = databaseFault(error);
  if (fault !== null) return fault === 'refused';
  if (!(error instanceof Error) || error instanceof RetryTransaction) return false;
  if ('code' in error && error.code === 'unavailable') return false;
  for (let link: unknown = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    if ('syscall' in link || OF_THE_MACHINE.test(`${link.name}: ${link.message}`)) return false;
  }
  return true;
}

/** Aborted work, or too little memory. */
const OF_THE_MACHINE = /^(Abort|Timeout)Error: |\ballocation failed$/;

/** SQLite reports these for a corrupt page and for a failed read. A corrupt index has its own code. */
const READ_FAILURES: readonly unknown[] = [11, 26];

/** True if a `damaged` error may be a failed read, which a retry may not repeat. */
export function isReadFailure(error: unknown): boolean {
  for (let link = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    if ('rawCode' in link && link.rawCode !== undefined) return READ_FAILURES.includes(link.rawCode);
  }
  return false;
}

/** The error for the caller: `unavailable` if the database is at fault, else the error itself. */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const fault = databaseFault(error);
  if (fault === null || fault === 'refused') return error;
  if (fault === 'damaged') return damaged(error);
  const headers = { 'retry-after': '1' };
  return new AppError('unavailable', messageOf(databaseErrorCode(error) ?? ''), { cause: error, headers });
}

export function damaged(cause?: unknown): AppError {
  const message = `The database is damaged, and nothing more is stored in it. ${RESTORE}`;
  return new AppError('unavailable', message, { cause, headers: { 'retry-after': '10' } });
}

function messageOf(code: string): string {
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return 'Another process holds the database. Nothing was stored; send this again.';
  }
  if (code.startsWith('SQLITE_FULL')) {
    return 'The disk that holds the database is full. Free some space, then send this again.';
  }
  if (code.startsWith('SQLITE_')) {
    return `The database can't be used (${code}). Check its disk, then send this again.`;
  }
  return `The database can't be reached (${code}). Send this again in a moment.`;
}

/**
 * Returns a one-line error for the person who starts a server, with the location of the database and the next step.
 *
 * @param name path of a file, host of a server
 */
export function openError(error: unknown, name: string): AppError {
  // Errors for API clients don't name the location.
  const code = databaseErrorCode(error) ?? (error instanceof Error && 'code' in error ? String(error.code) : '');
  const known = OPEN_ERRORS[code];
  if (known === undefined && error instanceof AppError) return error;
  const message = known?.(name) ?? `The database ${name} can't be opened: ${firstLine(error)}`;
  return new AppError('unavailable', message, { cause: error, headers: { 'retry-after': '5' } });
}

/** Folder of a path in this platform's syntax. */
function folderOf(path: string): string {
  return path.replace(/[/\\][^/\\]*$/, '') || '/';
}

export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}

/** The files beside a database belong to it alone and would corrupt another. */
const RESTORE =
  'Stop Interlude, move it away together with the -wal and -shm files beside it, and restore a backup or start with an empty database.';

const OPEN_ERRORS: Record<string, (name: string) => string> = {
  SQLITE_NOTADB: (name) =>
    `${name} is not a database. Move that file away, or set INTERLUDE_DATA_DIR to another folder.`,
  SQLITE_CORRUPT: (name) => `The database ${name} is damaged. ${RESTORE}`,
  SQLITE_READONLY: readOnly,
  SQLITE_CANTOPEN: (name) =>
    `The database ${name} can't be opened. Check that its folder exists, that this user may write there, and that it may open more files ("ulimit -n").`,
  SQLITE_BUSY: (name) => `Another process holds the database ${name} locked. Stop it, then start again.`,
  // A libSQL server limits a transaction to five seconds while another waits. At start-up, only a migration takes
  // longer.
  TRANSACTION_TIMEOUT: (name) =>
    `The database ${name} could not be migrated and is unchanged: the migration takes longer than the 5 s that its server allows while others write. Stop every Interlude that uses it, then run: npm run db:migrate`,
  SQLITE_FULL: diskFull,
  ENOSPC: diskFull,
  EDQUOT: (name) =>
    `The database ${name} can't be opened: this user's quota on the disk of ${folderOf(name)} is used up. ${ROOM}`,
  // SQLite also uses this code for an exceeded quota.
  SQLITE_IOERR: failing,
  EIO: failing,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
  // Creating a folder on a read-only disk fails with this code.
  ENOENT: readOnly,
  EROFS: readOnly,
  EACCES: readOnly,
  EPERM: readOnly,
  ENOTDIR: (name) => `The database ${name} can't be opened: a part of its path is a file. Set INTERLUDE_DATA_DIR.`,
  EISDIR: (name) => `The database ${name} can't be opened: it is a folder. Set INTERLUDE_DATA_DIR to another place.`,
  EEXIST: (name) => `The database ${name} can't be opened: its folder is a file. Set INTERLUDE_DATA_DIR.`,
};

const ROOM = 'Free some space there, or set INTERLUDE_DATA_DIR to a folder on another disk; then start again.';

function readOnly(name: string): string {
  return `The database ${name} can't be written here. Set INTERLUDE_DATA_DIR to a writable folder, or INTERLUDE_DATABASE_URL to a libSQL server.`;
}

function diskFull(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} is full. ${ROOM}`;
}

function failing(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} fails to read or write it. Check that disk and this user's quota on it, then start again.`;
}

function tooManyFiles(name: string): string {
  return `The database ${name} can't be opened: too many files are open. Raise the limit ("ulimit -n") or stop other programs, then start again.`;
}

/**
 * Retries while another process has locked the database. Waits here and not in SQLite's busy handler, which would block
 * the event loop.
 *
 * @throws the last error, after `timeoutMs`, or immediately for any other error
 */
export async function retryWhileBusy<T>(attempt: () => Promise<T>, timeoutMs: number): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let delayMs = 2; ; delayMs = Math.min(delayMs * 2, 100)) {
    try {
      return await attempt();
    } catch (error) {
      if (databaseErrorCode(error) !== 'SQLITE_BUSY' || performance.now() + delayMs > deadline) throw error;
      // Jitter keeps two processes from retrying in step.
      await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random() / 2)));
    }
  }
}
