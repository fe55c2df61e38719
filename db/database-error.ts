import { AppError } from '@interlude/protocol/errors';
import { LibsqlError } from '@libsql/client';
import { RetryTransaction } from './writes';

/**
 * What a database failure means. Only this file tells them apart.
 *
 * `soon`: the database, and not the request, is at fault (locked, full, unreachable, restarted under us): 503, and the
 * same request succeeds when it is back. `refused`: it will never take this statement, however often it is repeated, so
 * whatever caused it must be set aside. `damaged`: its file can't be trusted any more.
 */
export type DatabaseFault = 'soon' | 'refused' | 'damaged';

/**
 * The libSQL code (`SQLITE_BUSY`, `HRANA_WEBSOCKET_ERROR`, …) behind an error, however deep: drizzle wraps what the
 * client throws and leaves the code in `cause`. A libSQL server that can't be reached has the code of the network
 * (`ECONNREFUSED`, …) or `UNREACHABLE`: what `fetch` throws is no error of the client's.
 *
 * @returns null when the error did not come from the database.
 */
export function databaseErrorCode(error: unknown): string | null {
  let isNetwork = false;
  for (let link = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    // Next may load two copies of the client, and then `instanceof` does not know the other one's errors.
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

/** @returns null when the error did not come from the database; an unknown code counts as temporary */
export function databaseFault(error: unknown): DatabaseFault | null {
  const code = databaseErrorCode(error);
  // a stored number that JavaScript can't hold: the row is at fault, and will stay so
  if (code === null) return error instanceof RangeError && /\binteger\b/.test(error.message) ? 'refused' : null;
  if (DAMAGED.test(code)) return 'damaged';
  return REFUSED.test(code) ? 'refused' : 'soon';
}

/**
 * Whether what was worked on is at fault: the database refuses a statement made of it, or our own code fails on it. Then it
 * would fail every time. What the database, the machine or somebody else causes is over sooner or later.
 */
export function isInputsFault(error: unknown): boolean {
  const fault = databaseFault(error);
  if (fault !== null) return fault === 'refused';
  if (!(error instanceof Error) || error instanceof RetryTransaction) return false;
  if ('code' in error && error.code === 'unavailable') return false;
  for (let link: unknown = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    if ('syscall' in link || OF_THE_MACHINE.test(`${link.name}: ${link.message}`)) return false;
  }
  return true;
}

/** Somebody gave it up, or memory is short. */
const OF_THE_MACHINE = /^(Abort|Timeout)Error: |\ballocation failed$/;

/** What SQLite reports both for a bad page and for one that the disk failed to read. A bad index has its own code. */
const READ_FAILURES: readonly unknown[] = [11, 26];

/** Whether a `damaged` error may be a failed read, which would not happen again. */
export function isReadFailure(error: unknown): boolean {
  for (let link = error, depth = 0; link instanceof Error && depth < 8; link = link.cause, depth += 1) {
    if ('rawCode' in link && link.rawCode !== undefined) return READ_FAILURES.includes(link.rawCode);
  }
  return false;
}

/** What the caller gets: `unavailable` if the database is at fault, else the error itself. */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const fault = databaseFault(error);
  if (fault === null || fault === 'refused') return error;
  if (fault === 'damaged') return damaged(error);
  const headers = { 'retry-after': '1' };
  return new AppError('unavailable', messageOf(databaseErrorCode(error) ?? ''), { cause: error, headers });
}

export function damaged(cause?: unknown): AppError {
  const message =
    'The database is damaged, and nothing more is stored in it. Stop Interlude, move it away together with the -wal and -shm files beside it, and put a copy in its place or begin anew.';
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
    return `The database can't be used (${code}). Look at its disk, then send this again.`;
  }
  return `The database can't be reached (${code}). Send this again in a moment.`;
}

/**
 * The error for people who start a server whose database can't be opened: one line with the place and the next step.
 *
 * @param name the path of a file, the host of a server
 */
export function openError(error: unknown, name: string): AppError {
  // errors for those who send requests, unlike this one, do not name the place
  const code = databaseErrorCode(error) ?? (error instanceof Error && 'code' in error ? String(error.code) : '');
  const known = OPEN_ERRORS[code];
  if (known === undefined && error instanceof AppError) return error;
  const message = known?.(name) ?? `The database ${name} can't be opened: ${firstLine(error)}`;
  return new AppError('unavailable', message, { cause: error, headers: { 'retry-after': '5' } });
}

/** Of a path as this machine writes it. */
function folderOf(path: string): string {
  return path.replace(/[/\\][^/\\]*$/, '') || '/';
}

export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}

/** The files SQLite keeps beside a database belong to that database alone and would spoil another. */
const RESTORE =
  'Stop Interlude, move it away together with the -wal and -shm files beside it, and put a copy in its place or begin anew.';

const OPEN_ERRORS: Record<string, (name: string) => string> = {
  SQLITE_NOTADB: (name) =>
    `${name} is not a database. Move that file away, or set INTERLUDE_DATA_DIR to another folder.`,
  SQLITE_CORRUPT: (name) => `The database ${name} is damaged. ${RESTORE}`,
  SQLITE_READONLY: readOnly,
  SQLITE_CANTOPEN: (name) =>
    `The database ${name} can't be opened. Check that its folder exists, that this user may write there, and that it may open more files ("ulimit -n").`,
  SQLITE_BUSY: (name) => `Another process holds the database ${name} locked. Stop it, then start again.`,
  // a libSQL server gives a transaction five seconds while another waits to write, and of a start only a migration takes longer
  TRANSACTION_TIMEOUT: (name) =>
    `The database ${name} was not brought up to date, and is as it was: that takes longer than the 5 s which its server allows while others write. Stop every Interlude that uses it, then run: npm run db:migrate`,
  SQLITE_FULL: diskFull,
  ENOSPC: diskFull,
  EDQUOT: (name) =>
    `The database ${name} can't be opened: this user's quota on the disk of ${folderOf(name)} is used up. ${ROOM}`,
  // SQLite also reports a quota like this
  SQLITE_IOERR: failing,
  EIO: failing,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
  // creating a folder on a read-only disk fails like this
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
  return `The database ${name} can't be written here. Set INTERLUDE_DATA_DIR to a folder that can, or INTERLUDE_DATABASE_URL to a libSQL server.`;
}

function diskFull(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} is full. ${ROOM}`;
}

function failing(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} fails to read or write it. Look at that disk and at this user's quota on it, then start again.`;
}

function tooManyFiles(name: string): string {
  return `The database ${name} can't be opened: too many files are open. Raise the limit ("ulimit -n") or end other programs, then start again.`;
}

/**
 * Keeps trying while another process has the database locked. It waits here and not in SQLite's busy handler, because a
 * transaction begins on the event loop, which would wait too.
 *
 * @throws what `attempt` last threw, after `timeoutMs` or if it is any other error
 */
export async function retryWhileBusy<T>(attempt: () => Promise<T>, timeoutMs: number): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let delayMs = 2; ; delayMs = Math.min(delayMs * 2, 100)) {
    try {
      return await attempt();
    } catch (error) {
      if (databaseErrorCode(error) !== 'SQLITE_BUSY' || performance.now() + delayMs > deadline) throw error;
      // jitter, so that two processes do not try in step
      await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random() / 2)));
    }
  }
}
