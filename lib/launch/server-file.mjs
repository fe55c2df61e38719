import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { LaunchError } from './say.mjs';

const NAME = 'server.json';

/**
 * Tells the command line on this machine where the server is.
 *
 * Several servers may share a data directory: `server.json` is the one that came last, and each keeps a file of its own
 * (`server.json.<pid>`) beside it, from which the next one is taken when that one stops. Those of killed servers go at
 * the next start.
 *
 * @param {string} dataDir
 * @param {string} url
 * @param {string} [pages] where browsers on this machine find its pages, if not there
 * @returns {() => void} takes it back, in favour of the newest other server that still runs
 */
export function announce(dataDir, url, pages = url) {
  const content = JSON.stringify({ url, pid: process.pid, ...(pages === url ? {} : { pages }) });
  const own = `${NAME}.${process.pid}`;
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    removeStaleDrafts(join(dataDir, NAME));
    removeStaleDrafts(join(dataDir, `.${NAME}`), /^(\d+)(\.\d+)?$/);
    write(dataDir, own, content);
    write(dataDir, NAME, content);
  } catch (error) {
    throw LaunchError.ofWriting(error, dataDir, 'INTERLUDE_DATA_DIR');
  }
  return () => {
    try {
      rmSync(join(dataDir, own), { force: true });
      if (readFileSync(join(dataDir, NAME), 'utf8') !== content) return;
      const next = newestOther(dataDir);
      if (next === null) rmSync(join(dataDir, NAME));
      else write(dataDir, NAME, next);
    } catch {
      // gone already
    }
  };
}

/**
 * @param {string} dataDir
 * @param {number} port
 * @returns {string | null} the address of the server of this data directory that runs on the port
 */
export function runningAt(dataDir, port) {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataDir, NAME), 'utf8'));
    return new URL(url).port === String(port) && isRunning(pid) ? url : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} dataDir
 * @returns {string | null} the entry of the newest server that still runs
 */
function newestOther(dataDir) {
  removeStaleDrafts(join(dataDir, NAME));
  /** @type {{ content: string, at: number } | null} */
  let newest = null;
  for (const name of readdirSync(dataDir)) {
    if (!/^server\.json\.\d+$/.test(name)) continue;
    const file = join(dataDir, name);
    const at = statSync(file).mtimeMs;
    if (newest === null || at > newest.at) newest = { content: readFileSync(file, 'utf8'), at };
  }
  return newest?.content ?? null;
}

/**
 * Written whole or not at all: others may read it at any time.
 *
 * @param {string} dataDir
 * @param {string} name
 * @param {string} content
 */
function write(dataDir, name, content) {
  const draft = join(dataDir, `.${name}.${process.pid}`);
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, join(dataDir, name));
}
