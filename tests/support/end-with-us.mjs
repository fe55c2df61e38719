import { rmSync } from 'node:fs';

/**
 * Processes that must not outlive this one, such as servers: whoever fails, or is interrupted, does not come to stop them.
 * One that is killed outright can't see to that.
 */

/** @type {Map<import('node:child_process').ChildProcess, string | null>} */
const children = new Map();

process.on('exit', () => {
  for (const [child, folder] of children) {
    // one that stands still hears nothing else
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
export function endWithUs(child, folder = null) {
  children.set(child, folder);
  child.once('exit', () => children.delete(child));
  return child;
}
