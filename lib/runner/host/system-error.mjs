import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';

/**
 * Explains error codes of the system: what is wrong where, and what to do. Plain JavaScript without packages, because
 * `npm start` needs it before they are installed.
 */

/** @type {readonly [RegExp, (path: string, error: NodeJS.ErrnoException) => string, string][]} */
const MEANINGS = [
  [/^(ENOSPC|SQLITE_FULL)/, (path) => `the disk of ${path} is full`, 'free some space there'],
  [/^EDQUOT/, (path) => `your disk quota for ${path} is used up`, 'free some space there'],
  [/^EROFS/, (path) => `the disk of ${path} is read-only`, 'make it writable'],
  [/^(EACCES|EPERM)/, (path, error) => `no permission for ${nearest(error.path ?? path)}`, 'change its owner or mode'],
  [/^(EIO|SQLITE_IOERR)/, (path) => `the disk of ${path} is failing`, 'check it'],
  [/^(ENOTDIR|EEXIST)/, (path, error) => `part of ${error.path ?? path} is a file, not a folder`, 'move that file'],
  [
    /^(ENOENT|SQLITE_READONLY|SQLITE_CANTOPEN)/,
    (path) => `can't write to ${path}`,
    'check that you own it and that its disk is not read-only',
  ],
];

/** Codes explained for mkdir only, because they mean something else for files. */
const MKDIR_ONLY = /^(ENOENT|ENOTDIR|EEXIST)$/;

/**
 * @param {NodeJS.ErrnoException} error of a write in `path`
 * @param {string} path
 * @param {string} [elsewhere] the variable that selects another folder
 * @returns {string | null} one line; null for an unknown code
 */
export function explainSystemError(error, path, elsewhere) {
  const code = codeOf(error, path);
  if (/^E[MN]FILE$/.test(code)) {
    return 'too many open files; raise the limit ("ulimit -n") or stop other programs, then try again';
  }
  const known = MEANINGS.find(([codes]) => codes.test(code));
  if (known === undefined) return null;
  const [, what, next] = known;
  const other = elsewhere ? `, or set ${elsewhere} to a folder elsewhere` : '';
  return `${what(path, error)}; ${next}${other}, then try again`;
}

/**
 * @param {unknown} error that ended a command
 * @param {string} [dataDir]
 * @returns {string} one line
 */
export function formatError(error, dataDir) {
  if (!(error instanceof Error)) return String(error);
  const { code = '', path } = /** @type {NodeJS.ErrnoException} */ (error);
  const isInData =
    dataDir !== undefined && (path ? !relative(dataDir, path).startsWith('..') : String(code).startsWith('SQLITE_'));
  const place = isInData ? dataDir : path;
  const explained = place ? explainSystemError(error, place, isInData ? 'INTERLUDE_DATA_DIR' : undefined) : null;
  return (explained ?? error.message).replaceAll(/\s*\n\s*/g, ' ');
}

/**
 * Node reports only ENOENT for a recursive mkdir, so this finds the reason at the nearest existing folder.
 *
 * @param {NodeJS.ErrnoException} error
 * @param {string} path
 * @returns {string} empty if it explains nothing
 */
function codeOf(error, path) {
  const code = String(error.code ?? '');
  // The error is about a program, not a folder.
  if (error.syscall?.startsWith('spawn')) return '';
  if (MKDIR_ONLY.test(code) && error.syscall !== 'mkdir') return '';
  if (code !== 'ENOENT') return code;
  try {
    accessSync(nearest(path), constants.W_OK);
    return code;
  } catch (why) {
    return errorCode(why) ?? code;
  }
}

/**
 * The path itself, or the nearest existing folder above it.
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
