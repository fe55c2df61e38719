/**
 * State that every copy of this code shares in a process. It is on `globalThis`, because Next bundles each of its
 * entries separately and the launcher is in no bundle.
 *
 * @typedef {object} ProcessState
 * @property {((text: string) => string) | null} redactLog redacts every logged text; null until the server sets it
 * @property {unknown} server the single server of this process: see lib/server/process-server.mjs
 * @property {boolean} isLaunched true if a launcher closes the server
 * @property {(() => Promise<readonly import('./connectable-agents').FoundAgent[]>) | null} findAgents on this machine, set
 *   by the launcher
 */

const STATE = Symbol.for('interlude');
const holder = /** @type {{ [STATE]?: ProcessState }} */ (globalThis);

/** @returns {ProcessState} */
export function processState() {
  holder[STATE] ??= { redactLog: null, server: null, isLaunched: false, findAgents: null };
  return holder[STATE];
}
