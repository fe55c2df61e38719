/**
 * What the dashboard is built with when it is to be beneath a path: it stands for any, and the one that is chosen at
 * start takes its place. Nothing else of a build looks like it.
 */
export const PLACEHOLDER = '/__interlude_base__';

/**
 * Where a build is, from the project's folder: each path has its own. All but the one without a path are as deep, since
 * they link to packages.
 *
 * @param {string} basePath
 */
export function buildFolder(basePath) {
  return basePath === '' ? '.next' : `.next-beneath/${basePath.slice(1).replaceAll('/', '+')}`;
}
