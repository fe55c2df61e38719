import { rmSync } from 'node:fs';

/** Stops child processes, such as servers, when this process fails or is interrupted. A SIGKILL can't be handled. */

/** @type {Map<import('node:child_process').ChildProcess, string | null>} */
const children = new Map();

process.on('exit', () => {
  for (const [child, folder] of children) {
    // a stopped process handles no other signal
    child.kill('SIGKILL');
    if (folder !== null) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});

/**
 * @template {import('node:child_process').ChildProcess} Child
 * @param {Child} child
 * @param {string | null} folder that goes with it
 * @returns {Child}
 */
export function killOnExit(child, folder = null) {
  children.set(child, folder);
  child.once('exit', () => children.delete(child));
  return child;
}
