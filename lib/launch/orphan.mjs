import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

const LOOK_EVERY_MS = 500;
const SHELLS = ['sh', 'dash', 'bash', 'ash', 'zsh'];

/**
 * Calls back when the npm that runs this process is gone. npm passes signals on, but a kill -9 of it would leave the
 * server behind, holding the port, without anybody knowing how to end it.
 *
 * Started in any other way, a process may well outlive its parent: then this does nothing.
 *
 * @param {() => void} callback
 * @param {NodeJS.ProcessEnv} env
 */
export function whenOrphaned(callback, env = process.env) {
  if (env.npm_lifecycle_event !== 'start') return;
  const first = ancestors();
  const timer = setInterval(() => {
    if (String(ancestors(first.length)) === String(first)) return;
    clearInterval(timer);
    callback();
  }, LOOK_EVERY_MS);
  timer.unref();
}

/**
 * The processes up to npm: our parent, and its own where npm has put a shell in between.
 *
 * @param {number} [count]
 * @returns {number[]}
 */
function ancestors(count) {
  const parent = status(process.ppid);
  const isBeneathShell = count === undefined ? SHELLS.includes(parent.name) : count > 1;
  return isBeneathShell ? [process.ppid, parent.ppid] : [process.ppid];
}

/**
 * @param {number} pid
 * @returns {{ name: string, ppid: number }} nothing of use where there is no /proc
 */
function status(pid) {
  try {
    // pid (name) state ppid …; the name may hold anything, parentheses too
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [, ppid] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { name: basename(text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))), ppid: Number(ppid) };
  } catch {
    return { name: '', ppid: 0 };
  }
}
