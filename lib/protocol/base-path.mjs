/**
 * The path below which this server is mounted on its origin: `/interlude`, or '' for the root.
 *
 * Inside the server, all paths omit it: the front door strips it from requests, and `withBasePath` adds it to text that
 * leaves (links, redirects, cookie paths), as Next does for its own routes.
 *
 * JavaScript, because the launcher and Next's configuration import it. In Next's bundles, for browsers and server,
 * next.config.ts replaces the variable at build time.
 */
export const BASE_PATH = typeof process === 'undefined' ? '' : (process.env.INTERLUDE_BASE_PATH ?? '');

/**
 * @param {string} path on this server, with its leading slash
 * @returns {string} the path that browsers request
 */
export function withBasePath(path) {
  // The build inlines the variable, so bundles without a base path drop the call.
  return BASE_PATH && process.env.INTERLUDE_BASE_PATH ? prependBasePath(path, BASE_PATH) : path;
}

/**
 * @param {string} path requested by a browser, with or without a query
 * @returns {string | null} the path on this server; null if it is outside the base path
 */
export function withoutBasePath(path) {
  return BASE_PATH && process.env.INTERLUDE_BASE_PATH ? stripBasePath(path, BASE_PATH) : path;
}

/**
 * `withBasePath` for another base path than this process's.
 *
 * @param {string} path
 * @param {string} basePath
 */
export function prependBasePath(path, basePath) {
  return basePath === '' ? path : basePath + path.replace(/^\/(?=[?#]|$)/, '');
}

/**
 * `withoutBasePath` for another base path. Uses `replace`: the build would inline the length of its placeholder.
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
 * @param {string} address public URL of this server
 * @param {string} basePath
 */
export function isBeneath(address, basePath) {
  return basePath === '' || new URL(address).pathname.replace(/\/+$/, '') === basePath;
}

/** Segments that need no escaping in URLs, cookies or code, and that browsers don't resolve as `.` or `..`. */
const GOOD = /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._~-]+)+$/;
/** The build uses it as a folder name. */
const MAX_LENGTH = 200;

/**
 * @param {string} [setting] INTERLUDE_BASE_PATH
 * @returns {string} the valid base path; '' for none
 * @throws {RangeError} with the allowed form, in one line
 */
export function basePathSetting(setting = '') {
  if (setting === '' || setting === '/') return '';
  if (GOOD.test(setting) && setting.length <= MAX_LENGTH) return setting;
  throw new RangeError(
    `INTERLUDE_BASE_PATH is ${JSON.stringify(setting)}; set a path such as /interlude: letters, digits and ". _ ~ -" after each slash, no slash at the end`,
  );
}
