/**
 * Where this Interlude is beneath its origin: `/interlude`, or '' if the whole origin is its own.
 *
 * Inside, every path is without it: a request loses it at the door, and what is compared, kept or handed on never had it.
 * What goes out as text (an address, a redirect, a cookie's path) is given it last, by `placed`. Next does the same for
 * its routes and router.
 *
 * It is JavaScript, because the launcher and Next's configuration read it, too. In what Next bundles, for browsers as for
 * the server, the variable is what next.config.ts says, written into the code.
 */
export const BASE_PATH = typeof process === 'undefined' ? '' : (process.env.INTERLUDE_BASE_PATH ?? '');

/**
 * @param {string} path of this server, with its leading slash
 * @returns {string} as a browser asks for it
 */
export function withBasePath(path) {
  // asked again as it is written into code, so that pages that are beneath nothing load no more of this
  return BASE_PATH && process.env.INTERLUDE_BASE_PATH ? prependBasePath(path, BASE_PATH) : path;
}

/**
 * @param {string} path as a browser asked for it, with or without a query
 * @returns {string | null} the path of this server; null: it is none of it
 */
export function withoutBasePath(path) {
  return BASE_PATH && process.env.INTERLUDE_BASE_PATH ? stripBasePath(path, BASE_PATH) : path;
}

/**
 * `placed`, for a path that is not that of this process.
 *
 * @param {string} path
 * @param {string} basePath
 */
export function prependBasePath(path, basePath) {
  return basePath === '' ? path : basePath + path.replace(/^\/(?=[?#]|$)/, '');
}

/**
 * `unplaced`, in the same way. Cut by `replace`: a length would be written into the code as that of the placeholder.
 *
 * @param {string} path
 * @param {string} basePath
 * @returns {string | null}
 */
export function stripBasePath(path, basePath) {
  if (basePath === '') return path;
  const rest = path.startsWith(basePath) ? path.replace(basePath, '') : null;
  if (rest === null || !/^([/?#]|$)/.test(rest)) return null;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * @param {string} address where people find this server
 * @param {string} basePath
 */
export function isBeneath(address, basePath) {
  return basePath === '' || new URL(address).pathname.replace(/\/+$/, '') === basePath;
}

/** Parts that need no escaping in an address, a cookie or code, and that no browser takes for `.` or `..`. */
const GOOD = /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/;
/** It names a folder. */
const MAX_LENGTH = 200;

/**
 * @param {string} [setting] INTERLUDE_BASE_PATH
 * @returns {string} it; '' for none
 * @throws {RangeError} one line that says what to give
 */
export function basePathSetting(setting = '') {
  if (setting === '' || setting === '/') return '';
  if (GOOD.test(setting) && setting.length <= MAX_LENGTH) return setting;
  throw new RangeError(
    `INTERLUDE_BASE_PATH is ${JSON.stringify(setting)}; give a path such as /interlude, of letters, digits and ". _ ~ -" after each slash and without one at its end`,
  );
}
