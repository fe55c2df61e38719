/** The header in which the router of a page describes the page that it shows. */
export const ROUTER_STATE = 'next-router-state-tree';

/** Next refuses longer ones. */
const MAX_LENGTH = 40_000;
const REFRESHES = ['refetch', 'inside-shared-layout', 'metadata-only'];
const PARAMETERS = ['c', 'oc', 'd', 'ci', 'di'];

/**
 * Returns true if Next can read a `Next-Router-State-Tree`. For any other, Next throws and logs the stack.
 *
 * @param {string | string[] | undefined} header
 */
export function isRouterState(header) {
  if (header === undefined) return true;
  if (typeof header !== 'string' || header.length > MAX_LENGTH) return false;
  try {
    return isTree(JSON.parse(decodeURIComponent(header)));
  } catch {
    return false;
  }
}

/**
 * @param {unknown} tree
 * @returns {boolean}
 */
function isTree(tree) {
  if (!Array.isArray(tree) || tree.length < 2 || tree.length > 6) return false;
  const [segment, children, url, refresh, hints, last] = tree;
  return (
    isSegment(segment) &&
    typeof children === 'object' &&
    children !== null &&
    !Array.isArray(children) &&
    Object.values(children).every(isTree) &&
    (url == null || isTexts(url, 2)) &&
    (refresh == null || REFRESHES.includes(refresh)) &&
    (hints == null || Number.isFinite(hints)) &&
    (last === undefined || typeof last === 'string')
  );
}

/** @param {unknown} segment */
function isSegment(segment) {
  if (typeof segment === 'string') return true;
  if (!Array.isArray(segment) || segment.length !== 4 || !isTexts(segment.slice(0, 3), 3)) return false;
  const [, , parameter, siblings] = segment;
  return PARAMETERS.includes(parameter.replace(/\(.*$/, '')) && (siblings === null || isTexts(siblings));
}

/**
 * @param {unknown} list
 * @param {number} [count]
 */
function isTexts(list, count) {
  return (
    Array.isArray(list) && (count ?? list.length) === list.length && list.every((text) => typeof text === 'string')
  );
}
