/** @typedef {{ status: number, code: string, message: string, headers?: Record<string, string> }} Refusal */

/**
 * Maximum length of a page's URL. Next redirects some pages with the URL in two headers, which must fit clients' header
 * limits (16 KiB in Node).
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
  message: `The URL of a page may have at most ${MAX_ADDRESS.toLocaleString('en')} characters. Shorten it.`,
};

/**
 * Refuses requests that no page serves. Next would log each server-action call with a stack trace.
 *
 * @param {object} request
 * @param {string} [request.method]
 * @param {string} [request.url] path and query
 * @param {boolean} request.isAction has a `Next-Action` header
 * @param {boolean} [request.hasBody]
 * @returns {Refusal | null}
 */
export function pageRefusal({ method, url = '', isAction, hasBody = false }) {
  if (isAction) return ACTION;
  if (hasBody || (method !== 'GET' && method !== 'HEAD')) return BODY;
  return url.length > MAX_ADDRESS ? LONG : null;
}
