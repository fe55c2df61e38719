import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, removeStaleDrafts } from '../runner/host/data-folder.mjs';
import { LaunchError } from './launch-error.mjs';

const NAME = 'server.json';

/**
 * Publishes this server's URL to the command line on this machine.
 *
 * Several servers may share a data folder: `server.json` names the newest, and each keeps its own `server.json.<pid>`.
 * When the newest stops, the next newest takes its place. Files of killed servers are removed at the next start.
 *
 * @param {string} dataDir
 * @param {string} url
 * @param {string} [pages] URL at which browsers on this machine open the pages, if different
 * @returns {() => void} withdraws the URL in favour of the newest other running server
 */
export function publishServerFile(dataDir, url, pages = url) {
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
      // already removed
    }
  };
}

/**
 * @param {string} dataDir
 * @param {number} port
 * @returns {string | null} URL of this data folder's server on the port, if it is running
 */
export function runningServer(dataDir, port) {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataDir, NAME), 'utf8'));
    return new URL(url).port === String(port) && isRunning(pid) ? url : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} dataDir
 * @returns {string | null} content of the file of the newest running server
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
 * Atomic: other processes may read it at any time.
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
