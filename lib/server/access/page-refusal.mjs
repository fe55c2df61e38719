/** @typedef {{ status: number, code: string, message: string, headers?: Record<string, string> }} Refusal */

/**
 * Most characters of a page's address. Next answers some with a redirect that has the address in two headers, which
 * together must fit into what clients read (16 KiB in Node).
 */
const MAX_ADDRESS = 7_000;

/** @type {Refusal} */
const ACTION = { status: 404, code: 'not_found', message: 'This server has no server actions. Reload the page.' };
/** @type {Refusal} */
const BODY = {
  status: 405,
  code: 'method_not_allowed',
  message: 'Pages accept GET and HEAD without a body. Send data to /api/v1.',
  headers: { allow: 'GET, HEAD' },
};
/** @type {Refusal} */
const LONG = {
  status: 414,
  code: 'too_large',
  message: `The URL of a page may have ${MAX_ADDRESS.toLocaleString('en')} characters. Shorten it.`,
};

/**
 * Refuses what no page answers. Next would log a call of a server action with a stack each time.
 *
 * @param {object} request
 * @param {string} [request.method]
 * @param {string} [request.url] path and query
 * @param {boolean} request.isAction it has the header `Next-Action`
 * @param {boolean} [request.hasBody]
 * @returns {Refusal | null}
 */
export function pageRefusal({ method, url = '', isAction, hasBody = false }) {
  if (isAction) return ACTION;
  if (hasBody || (method !== 'GET' && method !== 'HEAD')) return BODY;
  return url.length > MAX_ADDRESS ? LONG : null;
}
