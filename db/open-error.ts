import { AppError } from '@interlude/protocol/errors';
import { databaseErrorCode } from './database-error';

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
  SQLITE_FULL: full,
  ENOSPC: full,
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

function full(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} is full. ${ROOM}`;
}

function failing(name: string): string {
  return `The database ${name} can't be opened: the disk of ${folderOf(name)} fails to read or write it. Look at that disk and at this user's quota on it, then start again.`;
}

function tooManyFiles(name: string): string {
  return `The database ${name} can't be opened: too many files are open. Raise the limit ("ulimit -n") or end other programs, then start again.`;
}
