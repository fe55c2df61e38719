import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';

/**
 * What the system means by its codes, for a person: what is wrong where, and what to do. Plain JavaScript without a
 * package: `npm start` needs it before there are any.
 */

/** @type {Record<string, (path: string, error: NodeJS.ErrnoException) => { what: string, next: string, canMove?: boolean }>} */
const CODES = {
  ENOSPC: full,
  SQLITE_FULL: full,
  EDQUOT: (path) => ({
    what: `your quota on the disk of ${path} is used up`,
    next: 'free some space there',
    canMove: true,
  }),
  EROFS: (path) => ({ what: `the disk of ${path} is read-only`, next: 'make it writable', canMove: true }),
  SQLITE_READONLY: unwritable,
  SQLITE_CANTOPEN: unwritable,
  ENOENT: unwritable,
  EACCES: forbidden,
  EPERM: forbidden,
  ENOTDIR: inTheWay,
  EEXIST: inTheWay,
  EIO: failing,
  SQLITE_IOERR: failing,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
};

/** What these mean where a file is opened is another matter. */
const OF_FOLDERS = /^(?:ENOENT|ENOTDIR|EEXIST)$/;

/**
 * @param {NodeJS.ErrnoException} error of writing something in `path`
 * @param {string} path an error of writing does not always say it
 * @param {string} [elsewhere] what to set to have it in another place
 * @returns {string | null} one line; null for a code that is not known here
 */
export function systemTrouble(error, path, elsewhere) {
  const known = CODES[codeOf(error, path)]?.(path, error);
  if (known === undefined) return null;
  const other = known.canMove && elsewhere ? `, or set ${elsewhere} to a folder elsewhere` : '';
  return `${known.what}; ${known.next}${other}, then try again`;
}

/**
 * @param {unknown} error whatever ended a command
 * @param {string} [dataDir] it had its files in
 * @returns {string} one line
 */
export function errorLine(error, dataDir) {
  if (!(error instanceof Error)) return String(error);
  const { code = '', path } = /** @type {NodeJS.ErrnoException} */ (error);
  const isInData =
    dataDir !== undefined && (path ? !relative(dataDir, path).startsWith('..') : code.startsWith('SQLITE_'));
  const place = isInData ? dataDir : path;
  const told = place ? systemTrouble(error, place, isInData ? 'INTERLUDE_DATA_DIR' : undefined) : null;
  return (told ?? error.message).replaceAll(/\s*\n\s*/g, ' ');
}

/**
 * Node says of a folder that it could not make, with those above it, only that it is not there: the nearest one above
 * tells why. SQLite's codes go into detail (`SQLITE_IOERR_WRITE`).
 *
 * @param {NodeJS.ErrnoException} error
 * @param {string} path
 */
function codeOf(error, path) {
  const code = /^SQLITE_[A-Z]+/.exec(error?.code ?? '')?.[0] ?? error?.code ?? '';
  if (OF_FOLDERS.test(code) && error.syscall !== 'mkdir') return '';
  if (code !== 'ENOENT') return code;
  let above = path;
  while (!existsSync(above) && above !== dirname(above)) above = dirname(above);
  try {
    accessSync(above, constants.W_OK);
    return code;
  } catch (why) {
    return why.code;
  }
}

/** @param {string} path */
function full(path) {
  return { what: `the disk of ${path} is full`, next: 'free some space there', canMove: true };
}

/** @param {string} path */
function unwritable(path) {
  return { what: `nothing can be written in ${path}`, next: 'see that its disk is there, and yours', canMove: true };
}

/** @param {string} path */
function forbidden(path) {
  return { what: `this user may not write in ${path}`, next: 'make it yours', canMove: true };
}

/**
 * @param {string} path
 * @param {NodeJS.ErrnoException} error
 */
function inTheWay(path, error) {
  return { what: `something in the way of ${error.path ?? path} is no folder`, next: 'move it away', canMove: true };
}

/** @param {string} path */
function failing(path) {
  return { what: `the disk of ${path} fails`, next: 'look at it', canMove: true };
}

function tooManyFiles() {
  return { what: 'too many files are open', next: 'raise the limit ("ulimit -n") or end other programs' };
}
