import { readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode } from './system-error.mjs';

/**
 * Removes what killed processes have left beside a file or folder: `<path>.<pid>`. What belongs to a process that runs
 * stays, and so does what other programs name in another way. Plain JavaScript without a package: `npm start` needs it
 * before there are any.
 *
 * @param {string} path
 * @param {RegExp} [ending] behind `<path>.`, the pid being its first group
 */
export function removeLeftDrafts(path, ending = /^(\d+)$/) {
  const [folder, name] = [dirname(path), basename(path)];
  for (const entry of entriesOf(folder)) {
    const pid = entry.startsWith(`${name}.`) ? ending.exec(entry.slice(name.length + 1))?.[1] : undefined;
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      rmSync(join(folder, entry), { recursive: true, force: true });
    } catch {
      // owned by another user
    }
  }
}

/** @param {number} pid */
export function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** @param {string} folder */
function entriesOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
