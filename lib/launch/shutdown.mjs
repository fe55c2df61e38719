import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** As shells have it for who is ended by them. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/** npm passes on what a terminal has sent already to all that run in it. */
const TWICE_BY_NPM_MS = 250;

/** @typedef {keyof typeof EXIT_CODES} Signal */

/**
 * How the process ends when it is told to, by Ctrl-C or SIGTERM: after what has to be done first, and at once when it is
 * told again. From the first line on, because in a container, where it is the first process, nothing else would end it.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ tell(name: Signal): void, after(work: () => Promise<unknown>): void }} `after` says what has to be done,
 *   which must come to an end by itself
 */
export function handleSignals(env = process.env) {
  /** @type {() => Promise<unknown>} */
  let work = () => Promise.resolve();
  /** @type {{ name: Signal, at: number } | null} */
  let told = null;
  /** @param {Signal} name */
  const tell = (name) => {
    const exit = () => process.exit(EXIT_CODES[name]);
    if (told === null) {
      told = { name, at: performance.now() };
      void work()
        .catch(() => {})
        .then(exit);
      return;
    }
    const isSame = told.name === name && performance.now() - told.at < TWICE_BY_NPM_MS;
    if (!isSame || env.npm_lifecycle_event !== 'start') exit();
  };
  for (const name of /** @type {Signal[]} */ (Object.keys(EXIT_CODES))) process.on(name, () => tell(name));
  return {
    tell,
    after(given) {
      work = given;
    },
  };
}

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
export function onOrphaned(callback, env = process.env) {
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

/**
 * Lets a process go on whose output nobody reads any more: a pager that was left, a collector of logs that has died. Node
 * would end it by that error, and Next, which keeps it from ending, would say so on the same output, again and again.
 */
export function ignoreOutputErrors() {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
}
