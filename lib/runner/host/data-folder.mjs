import {
  chmodSync,
  closeSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorCode } from './system-error.mjs';

/**
 * The data folder is its owner's alone: who could read it would have the token and what every agent does, who could
 * write in it could send runners elsewhere. Plain JavaScript without a package: `npm start` needs it before there are
 * any.
 *
 * Failure: what only others could read is closed to them. What somebody else could have put there is refused, in one
 * line that says what to do. Where the system knows no owners there is nothing to check.
 */

/** An end that needs no stack. */
export class DataFolderError extends Error {
  /** @param {string} message one line that says what to do next */
  constructor(message) {
    super(message);
    this.name = 'DataFolderError';
  }
}

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
/** Packages by the thousand, which are nobody's secret. That others can't write in it counts as for the rest. */
const NOT_LOOKED_THROUGH = 'agents';

/**
 * Looks at a data folder before anything in it is believed. One that is not there yet is not made.
 *
 * @param {string} folder
 * @param {number | undefined} [uid] whose it must be
 * @throws DataFolderError
 */
export function checkDataFolder(folder, uid = process.geteuid?.()) {
  if (uid === undefined) return;
  const wasClosed = isClosed(folder);
  checkFolder(folder, uid);
  checkParents(folder, uid);
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    // What stands in a closed folder nobody else gets at, whatever its own mode: npm makes folders as the umask has it.
    if (!checkFolder(path, uid, wasClosed && !isLink(path))) checkFile(path, uid);
    else if (name !== NOT_LOOKED_THROUGH) for (const inner of namesIn(path)) checkFile(join(path, inner), uid);
    // of what a runner loads from there, the folder in which others could have put something
    else checkFolder(join(path, 'node_modules'), uid, wasClosed);
  }
}

/**
 * Makes a file that only its owner can read, or closes the one that is there. That is not opened: to close it again
 * would take from SQLite every lock that this process has on it.
 *
 * @param {string} file
 * @throws DataFolderError where it is somebody else's
 * @see https://sqlite.org/howtocorrupt.html 2.2
 */
export function makePrivate(file) {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    const uid = process.geteuid?.();
    if (uid !== undefined) closeToOthers(statSync(file), file, uid, (mode) => chmodSync(file, mode));
  }
}

/**
 * @param {string} file
 * @returns {string} what is in it, which nobody but its owner can have written
 * @throws DataFolderError where it is somebody else's; the system's own error where it can't be read
 */
export function readPrivate(file) {
  const opened = openSync(file, 'r');
  try {
    const uid = process.geteuid?.();
    if (uid !== undefined) closeToOthers(fstatSync(opened), file, uid, (mode) => fchmodSync(opened, mode));
    return readFileSync(opened, 'utf8');
  } finally {
    closeSync(opened);
  }
}

/**
 * @param {import('node:fs').Stats} stats
 * @param {string} file
 * @param {number} uid
 * @param {(mode: number) => void} change
 */
function closeToOthers(stats, file, uid, change) {
  requireOwn(file, stats, uid);
  if (stats.mode & OTHERS) tighten(() => change(stats.mode & 0o700));
}

/**
 * @param {string} path
 * @param {number} uid
 * @param {boolean} [isOutOfReach] whether nobody else could write in it, though its mode says so
 * @returns {boolean} whether it is a folder
 */
function checkFolder(path, uid, isOutOfReach = false) {
  const stats = statsOf(path);
  if (!stats?.isDirectory()) return false;
  requireOwn(path, stats, uid);
  if (stats.mode & OTHERS_WRITE && !isOutOfReach) {
    throw new DataFolderError(
      `other users can write in ${path}; look that what is in it is yours and run "chmod go-w" on it, or set INTERLUDE_DATA_DIR to another folder`,
    );
  }
  if (stats.mode & OTHERS && !isLink(path)) tighten(() => chmodSync(path, stats.mode & 0o700));
  return true;
}

/**
 * @param {string} folder
 * @param {number} uid
 */
function checkParents(folder, uid) {
  const loose = looseParent(folder, uid);
  if (loose === null) return;
  const who =
    loose.owner === null
      ? `other users can write in ${loose.path}`
      : `${loose.path} belongs to another user (${loose.owner})`;
  const next = loose.owner === null ? 'run "chmod go-w" on it' : 'make it yours with "chown"';
  throw new DataFolderError(
    `${who}, who could put another folder in the place of ${folder}; ${next}, or set INTERLUDE_DATA_DIR to a folder elsewhere`,
  );
}

/**
 * @param {string} folder
 * @returns {boolean}
 */
function isClosed(folder) {
  const stats = statsOf(folder);
  return stats !== null && (stats.mode & OTHERS) === 0;
}

/**
 * @param {string} path
 * @param {number} uid
 */
function checkFile(path, uid) {
  const stats = statsOf(path);
  if (stats === null) return;
  requireOwn(path, stats, uid);
  if (stats.isFile() && stats.mode & OTHERS && !isLink(path)) tighten(() => chmodSync(path, stats.mode & 0o700));
}

/**
 * @param {string} path
 * @param {import('node:fs').Stats} stats
 * @param {number} uid
 */
function requireOwn(path, stats, uid) {
  if (stats.uid === uid) return;
  throw new DataFolderError(
    `${path} belongs to another user (${stats.uid}), who could change it; make it yours with "chown" if you trust what is in it, or set INTERLUDE_DATA_DIR to another folder`,
  );
}

/**
 * @param {string} path
 * @returns {import('node:fs').Stats | null} null if nothing can be looked at: drafts and logs come and go, and a
 *   place that can't be reached is told by whoever wants to write there
 */
function statsOf(path) {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/** @param {() => void} change */
function tighten(change) {
  try {
    change();
  } catch {
    // gone meanwhile, or the disk is read-only: whoever writes there next says so
  }
}

/** @param {string} path */
function isLink(path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== false;
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function namesIn(folder) {
  try {
    return readdirSync(folder);
  } catch {
    // not there yet, or a file in its place, which is told by whoever wants to write there
    return [];
  }
}

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

/**
 * Who can write in a folder can rename what is in it: the data folder too, and put another one in its place. So the
 * whole chain of folders above it must be of those who are trusted anyway, and closed to others, as ssh has it
 * (StrictModes).
 */

const STICKY = 0o1000;
const GROUP_WRITE = 0o020;
const WORLD_WRITE = 0o002;

/**
 * @param {string} folder it need not be there yet
 * @param {number} uid whose it is
 * @returns {{ path: string, owner: number | null } | null} the folder above it in which somebody else can rename, and
 *   who, where that is its owner; null when there is none
 */
function looseParent(folder, uid) {
  const trusted = trustedUsers(uid);
  for (const path of parentsOf(folder)) {
    const stats = orNull(() => statSync(path));
    if (stats === null) continue;
    if (!trusted.has(stats.uid)) return { path, owner: stats.uid };
    // there, only the owner of a name renames it, and that is looked at as well
    if (stats.mode & STICKY) continue;
    const isOpen = stats.mode & WORLD_WRITE || (stats.mode & GROUP_WRITE && !isOwnGroup(stats.gid, uid, trusted));
    if (isOpen) return { path, owner: null };
  }
  return null;
}

/** More links than the system itself follows. */
const MOST_LINKS = 40;

/**
 * Every folder that has a say in where a path leads: those above it as it is written, and above each link on the way.
 *
 * @param {string} folder
 * @returns {Set<string>}
 */
function parentsOf(folder) {
  const found = new Set();
  let links = 0;
  const walk = (/** @type {string} */ path) => {
    const names = path.split(sep).filter((name) => name !== '');
    let at = parse(path).root;
    for (const [index, name] of names.entries()) {
      found.add(at);
      const next = join(at, name);
      const target = links < MOST_LINKS ? orNull(() => readlinkSync(next)) : null;
      if (target !== null) {
        links += 1;
        walk(resolve(at, target, ...names.slice(index + 1)));
        return;
      }
      at = next;
    }
  };
  walk(resolve(folder));
  return found;
}

/**
 * The system's owner, ourselves, and who owns the code that is running: all of them can do what they like anyway.
 *
 * @param {number} uid
 * @returns {Set<number>}
 */
function trustedUsers(uid) {
  const trusted = new Set([0, uid, statSync(fileURLToPath(import.meta.url)).uid]);
  // In a container with users of its own, what belongs to nobody in it belongs to the system outside.
  const map = textOf('/proc/self/uid_map').trim();
  if (map !== '' && !/^0\s+0\s+4294967295$/.test(map)) {
    trusted.add(Number(textOf('/proc/sys/kernel/overflowuid') || '65534'));
  }
  return trusted;
}

/**
 * Whether nobody else is in a group: many systems give each user one, and let it write wherever the user may. Where the
 * users are listed elsewhere than in the two files, only its number tells.
 *
 * @param {number} gid
 * @param {number} uid
 * @param {Set<number>} trusted
 */
function isOwnGroup(gid, uid, trusted) {
  const users = linesOf('/etc/passwd').map(([name, , id, primary]) => ({
    name,
    uid: Number(id),
    gid: Number(primary),
  }));
  const group = linesOf('/etc/group').find(([, , id]) => Number(id) === gid);
  // the system's own group is nobody's else: containers run as a number of their choice in it
  if (group === undefined || (gid !== 0 && !users.some((user) => user.uid === uid))) return gid === uid;
  const named = (group[3] ?? '').split(',').filter((name) => name !== '');
  const members = [
    ...named.map((name) => users.find((user) => user.name === name)?.uid ?? -1),
    ...users.filter((user) => user.gid === gid).map((user) => user.uid),
  ];
  return members.every((member) => trusted.has(member));
}

/**
 * @param {string} path
 * @returns {string[][]}
 */
function linesOf(path) {
  const lines = textOf(path).split('\n');
  return lines.filter((line) => line.includes(':')).map((line) => line.split(':'));
}

/**
 * @param {string} path
 * @returns {string} empty if it can't be read
 */
function textOf(path) {
  return orNull(() => readFileSync(path, 'utf8')) ?? '';
}

/**
 * @template T
 * @param {() => T} look
 * @returns {T | null}
 */
function orNull(look) {
  try {
    return look();
  } catch {
    return null;
  }
}
