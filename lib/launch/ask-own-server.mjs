/** Requests of start-up code to the server it has started, as whoever Interlude belongs to. */

const WITHIN_MS = 10_000;

/**
 * @typedef {object} Own
 * @property {string} url
 * @property {string} token the owner's
 */

/**
 * @param {Own} own
 * @param {string} path below `/api/v1`
 * @param {{ method?: string, body?: object, token?: string }} [options] with a body it is posted; `token` instead of the
 *   owner's
 * @returns {Promise<{ status: number, answer: Record<string, unknown> }>} status 0: it did not answer
 */
export async function askOwnServer(
  own,
  path,
  { body, token = own.token, method = body === undefined ? 'GET' : 'POST' } = {},
) {
  try {
    const response = await fetch(`${own.url}/api/v1${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(WITHIN_MS),
      redirect: 'manual',
    });
    return { status: response.status, answer: await response.json() };
  } catch {
    return { status: 0, answer: {} };
  }
}
