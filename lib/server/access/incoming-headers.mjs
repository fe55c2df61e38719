import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state.js';

/** The header in which the router of a page describes the page that it shows. */
const ROUTER_STATE = 'next-router-state-tree';

/**
 * Prepares the headers of a request before anything reads them:
 *
 * - Appends the address of the connection to `X-Forwarded-For`, as every proxy does. No client can choose the last entry.
 * - Removes `Range`, which nothing here serves. Next fails with a 500 at a range that it can't satisfy.
 * - Removes a router state that Next can't read, for which Next would log a stack.
 *
 * @param {Pick<import('node:http').IncomingMessage, 'headers' | 'socket'>} request
 */
export function prepareHeaders({ headers, socket }) {
  const given = headers['x-forwarded-for'];
  const peer = socket.remoteAddress ?? '';
  headers['x-forwarded-for'] = given === undefined ? peer : `${given}, ${peer}`;
  delete headers.range;
  try {
    parseAndValidateFlightRouterState(headers[ROUTER_STATE]);
  } catch {
    delete headers[ROUTER_STATE];
  }
}
