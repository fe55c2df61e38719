import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';

/**
 * What the system means by its codes, for a person: what is wrong where, and what to do. Plain JavaScript without a
 * package: `npm start` needs it before there are any.
 */

/** @type {readonly [RegExp, (path: string, error: NodeJS.ErrnoException) => string, string][]} */
const MEANINGS = [
  [/^(ENOSPC|SQLITE_FULL)/, (path) => `the disk of ${path} is full`, 'free some space there'],
  [/^EDQUOT/, (path) => `your quota on the disk of ${path} is used up`, 'free some space there'],
  [/^EROFS/, (path) => `the disk of ${path} is read-only`, 'make it writable'],
  [/^(EACCES|EPERM)/, (path, error) => `no permission for ${nearest(error.path ?? path)}`, 'change its owner or mode'],
  [/^(EIO|SQLITE_IOERR)/, (path) => `the disk of ${path} is failing`, 'check it'],
  [/^(ENOTDIR|EEXIST)/, (path, error) => `part of ${error.path ?? path} is a file, not a folder`, 'move that file'],
  [
    /^(ENOENT|SQLITE_READONLY|SQLITE_CANTOPEN)/,
    (path) => `nothing can be written in ${path}`,
    'see that it is yours, and that its disk is not read-only',
  ],
];

/** What these mean where a file is opened is another matter. */
const OF_FOLDERS = /^(ENOENT|ENOTDIR|EEXIST)$/;

/**
 * @param {NodeJS.ErrnoException} error of writing something in `path`
 * @param {string} path an error of writing does not always say it
 * @param {string} [elsewhere] what to set to have it in another place
 * @returns {string | null} one line; null for a code that is not known here
 */
export function systemTrouble(error, path, elsewhere) {
  const code = codeOf(error, path);
  if (/^E[MN]FILE$/.test(code)) {
    return 'too many files are open; raise the limit ("ulimit -n") or end other programs, then try again';
  }
  const known = MEANINGS.find(([codes]) => codes.test(code));
  if (known === undefined) return null;
  const [, what, next] = known;
  const other = elsewhere ? `, or set ${elsewhere} to a folder elsewhere` : '';
  return `${what(path, error)}; ${next}${other}, then try again`;
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
    dataDir !== undefined && (path ? !relative(dataDir, path).startsWith('..') : String(code).startsWith('SQLITE_'));
  const place = isInData ? dataDir : path;
  const told = place ? systemTrouble(error, place, isInData ? 'INTERLUDE_DATA_DIR' : undefined) : null;
  return (told ?? error.message).replaceAll(/\s*\n\s*/g, ' ');
}

/**
 * Node says of a folder that it could not make, with those above it, only that it is not there: the nearest one above
 * tells why.
 *
 * @param {NodeJS.ErrnoException} error
 * @param {string} path
 * @returns {string} empty if there is none that says anything
 */
function codeOf(error, path) {
  const code = String(error.code ?? '');
  // a program that can't be started is another matter
  if (error.syscall?.startsWith('spawn')) return '';
  if (OF_FOLDERS.test(code) && error.syscall !== 'mkdir') return '';
  if (code !== 'ENOENT') return code;
  try {
    accessSync(nearest(path), constants.W_OK);
    return code;
  } catch (why) {
    return errorCode(why) ?? code;
  }
}

/**
 * What keeps somebody from it: the file or folder itself, or the nearest one above that can be seen.
 *
 * @param {string} path
 * @returns {string}
 */
function nearest(path) {
  return existsSync(path) || path === dirname(path) ? path : nearest(dirname(path));
}

/** @param {unknown} error */
export function errorCode(error) {
  return error instanceof Error ? /** @type {NodeJS.ErrnoException} */ (error).code : undefined;
}
