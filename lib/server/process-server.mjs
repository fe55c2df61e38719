/**
 * The single server of this process. Stored on `globalThis`, because Next bundles each entry separately and the
 * launcher is in no bundle.
 */

/**
 * @typedef {object} Slot
 * @property {import('./create-server').Server | null} server
 * @property {boolean} isLaunched whether a launcher ends the server when the process is told to end
 */

const SLOT = Symbol.for('interlude.server');
const holder = /** @type {{ [SLOT]?: Slot }} */ (globalThis);

/** @returns {Slot} */
function slot() {
  holder[SLOT] ??= { server: null, isLaunched: false };
  return holder[SLOT];
}

/** @param {import('./create-server').Server} server */
export function setServer(server) {
  slot().server = server;
}

/**
 * @returns {import('./create-server').Server}
 * @throws {Error} before instrumentation.ts has made it
 */
export function theServer() {
  const { server } = slot();
  if (server === null) throw new Error('this process has no server: instrumentation.ts did not run');
  return server;
}

/** From now on the caller ends the server, in its own order. */
export function launchServer() {
  slot().isLaunched = true;
}

/** @returns {boolean} */
export function isLaunched() {
  return slot().isLaunched;
}
