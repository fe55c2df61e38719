/** What the system means by its codes, for a person: what is wrong where, and what to do. */

/** @type {Record<string, (path: string) => { what: string, next: string, canMove?: boolean }>} */
const CODES = {
  ENOSPC: (path) => ({ what: `the disk of ${path} is full`, next: 'free some space there', canMove: true }),
  EDQUOT: (path) => ({
    what: `your quota on the disk of ${path} is used up`,
    next: 'free some space there',
    canMove: true,
  }),
  EROFS: (path) => ({ what: `the disk of ${path} is read-only`, next: 'make it writable', canMove: true }),
  EACCES: forbidden,
  EPERM: forbidden,
  EIO: (path) => ({ what: `the disk of ${path} fails`, next: 'look at it', canMove: true }),
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
};

/**
 * @param {NodeJS.ErrnoException} error
 * @param {string} path where it was met; an error of writing does not say it
 * @param {string} [elsewhere] what to set to have it in another place
 * @returns {string | null} one line; null for a code that is not known here
 */
export function systemTrouble(error, path, elsewhere) {
  const known = CODES[error?.code ?? '']?.(path);
  if (known === undefined) return null;
  const other = known.canMove && elsewhere ? `, or set ${elsewhere} to a folder elsewhere` : '';
  return `${known.what}; ${known.next}${other}, then start again`;
}

/** @param {string} path */
function forbidden(path) {
  return { what: `this user may not write in ${path}`, next: 'make it yours', canMove: true };
}

function tooManyFiles() {
  return { what: 'too many files are open', next: 'raise the limit ("ulimit -n") or end other programs' };
}
