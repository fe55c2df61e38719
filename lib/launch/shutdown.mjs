import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** 128 + signal number, as shells report it. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/** npm repeats a signal that the terminal has already sent to the whole process group. */
const NPM_REPEAT_MS = 250;

/** @typedef {keyof typeof EXIT_CODES} Signal */

/**
 * Handles Ctrl-C and SIGTERM: runs the final work, then exits; a second signal exits immediately. Installed before
 * anything else, because process 1 of a container ignores signals without a handler.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ end(name: Signal): void, setFinalWork(work: () => Promise<unknown>): void }} `setFinalWork` sets the final work, which
 * must settle
 */
export function handleSignals(env = process.env) {
  /** @type {() => Promise<unknown>} */
  let finalWork = () => Promise.resolve();
  /** @type {{ name: Signal, at: number } | null} */
  let first = null;
  /** @param {Signal} name */
  const end = (name) => {
    const exit = () => process.exit(EXIT_CODES[name]);
    if (first === null) {
      first = { name, at: performance.now() };
      void finalWork()
        .catch(() => {})
        .then(exit);
      return;
    }
    const isRepeat = first.name === name && performance.now() - first.at < NPM_REPEAT_MS;
    if (!isRepeat || env.npm_lifecycle_event !== 'start') exit();
  };
  for (const name of /** @type {Signal[]} */ (Object.keys(EXIT_CODES))) process.on(name, () => end(name));
  return {
    end,
    setFinalWork(work) {
      finalWork = work;
    },
  };
}

const POLL_MS = 500;
const SHELLS = ['sh', 'dash', 'bash', 'ash', 'zsh'];

/**
 * Calls back when the npm that started this process has ended. npm forwards signals, but after a kill -9 of npm the
 * server would keep the port unnoticed. Does nothing in a process that npm didn't start: it may outlive its parent.
 *
 * @param {() => void} callback
 * @param {NodeJS.ProcessEnv} env
 */
export function onOrphaned(callback, env = process.env) {
  if (env.npm_lifecycle_event !== 'start') return;
  const first = ancestors();
  const timer = setInterval(() => {
    if (String(ancestors(first.length)) === String(first)) return;
    clearInterval(timer);
    callback();
  }, POLL_MS);
  timer.unref();
}

/**
 * Process ids up to npm: the parent, and the grandparent if the parent is a shell.
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
 * @returns {{ name: string, ppid: number }} empty without /proc
 */
function status(pid) {
  try {
    // pid (name) state ppid …; the name may contain parentheses
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [, ppid] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { name: basename(text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))), ppid: Number(ppid) };
  } catch {
    return { name: '', ppid: 0 };
  }
}

/**
 * Keeps a process running after its output closes: a pager that quit, a log collector that died. Node would exit with
 * the error; Next would catch it and log it to the same output, endlessly.
 */
export function ignoreOutputErrors() {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
}
