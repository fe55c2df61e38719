import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state.js';

/** Header with the state of Next's router. */
const ROUTER_STATE = 'next-router-state-tree';

/**
 * Prepares request headers before anything reads them:
 *
 * - Appends the peer address to `X-Forwarded-For`, as every proxy does. No client can choose the last entry.
 * - Removes `Range`, which no route serves. Next responds with 500 to an unsatisfiable range.
 * - Removes a router state that Next can't parse and would log with a stack trace.
 *
 * @param {Pick<import('node:http').IncomingMessage, 'headers' | 'socket'>} request
 */
export function prepareHeaders({ headers, socket }) {
  const forwarded = headers['x-forwarded-for'];
  const peer = socket.remoteAddress ?? '';
  headers['x-forwarded-for'] = forwarded === undefined ? peer : `${forwarded}, ${peer}`;
  delete headers.range;
  try {
    parseAndValidateFlightRouterState(headers[ROUTER_STATE]);
  } catch {
    delete headers[ROUTER_STATE];
  }
}
