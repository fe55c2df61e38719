import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LONGEST_REST_MS = 30_000;
const program = fileURLToPath(new URL('./interlude.mjs', import.meta.url));

/**
 * Runs the demo fleet in its own process, like any runner. It ends with this one, whose death breaks the channel
 * between them. If it fails it is started again, after a growing pause.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {() => Promise<void>} ends it, and resolves when it has said goodbye to its sessions
 */
export function startDemoFleet(env) {
  let ended = false;
  let failures = 0;
  /** @type {import('node:child_process').ChildProcess | null} */
  let child = null;
  const start = () => {
    if (ended) return;
    const startedAt = Date.now();
    child = fork(program, ['demo'], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    child.once('error', (error) => process.stderr.write(`interlude: the demo did not start: ${error.message}\n`));
    child.once('exit', (code) => {
      if (ended || code === 0) return;
      // one that has run for a while did not fail at once
      failures = Date.now() - startedAt > LONGEST_REST_MS ? 1 : failures + 1;
      setTimeout(start, Math.min(1_000 * 2 ** (failures - 1), LONGEST_REST_MS));
    });
  };
  start();
  return () => {
    ended = true;
    const last = child;
    if (!last || last.exitCode !== null || last.signalCode !== null) return Promise.resolve();
    /** @type {Promise<void>} */
    const gone = new Promise((resolve) => last.once('exit', () => resolve()));
    last.kill('SIGTERM');
    return gone;
  };
}
