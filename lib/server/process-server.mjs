import { processState } from '../protocol/process-state.mjs';

/** @param {import('./create-server').Server} server */
export function setServer(server) {
  processState().server = server;
}

/**
 * The single server of this process.
 *
 * @returns {import('./create-server').Server}
 * @throws {Error} before instrumentation.ts has created it
 */
export function theServer() {
  const { server } = processState();
  if (server === null) throw new Error('This process has no server: instrumentation.ts did not run.');
  return /** @type {import('./create-server').Server} */ (server);
}
