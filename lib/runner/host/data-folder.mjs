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
import { ownProgram } from './own-program.mjs';
import { errorCode } from './system-error.mjs';

/**
 * Keeps the data folder private: other users could read the token and everything agents do, or redirect runners. Plain
 * JavaScript without packages, because `npm start` needs it before they are installed.
 *
 * Failure: files that others can read are made private. Files that others could have written are refused with an error
 * that says what to do. Systems without file owners are not checked.
 */

export class DataFolderError extends Error {
  /** @param {string} message one line with the next step */
  constructor(message) {
    super(message);
    this.name = 'DataFolderError';
  }
}

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
/** Holds thousands of installed packages, which are not secret, so its files are not checked one by one. */
const PACKAGES_FOLDER = 'agents';

/**
 * Checks a data folder before anything in it is used. Does not create it.
 *
 * @param {string} folder
 * @param {number | undefined} [uid] the required owner
 * @throws DataFolderError
 */
export function checkDataFolder(folder, uid = process.geteuid?.()) {
  if (uid === undefined) return;
  const wasPrivate = isPrivate(folder);
  checkFolder(folder, uid);
  checkParents(folder, uid);
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    // Inside a private folder modes don't matter: npm creates folders with the umask.
    if (!checkFolder(path, uid, wasPrivate && !isLink(path))) checkFile(path, uid);
    else if (name !== PACKAGES_FOLDER) for (const inner of namesIn(path)) checkFile(join(path, inner), uid);
    // Runners load code from here.
    else checkFolder(join(path, 'node_modules'), uid, wasPrivate);
  }
}

/**
 * Creates a private file, or makes an existing one private. Does not open an existing file: closing it would drop this
 * process's SQLite locks on the file.
 *
 * @param {string} file
 * @throws DataFolderError if another user owns it
 * @see https://sqlite.org/howtocorrupt.html 2.2
 */
export function makePrivate(file) {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    const uid = process.geteuid?.();
    if (uid !== undefined) restrictToOwner(statSync(file), file, uid, (mode) => chmodSync(file, mode));
  }
}

/**
 * @param {string} file
 * @returns {string} its content
 * @throws DataFolderError if another user owns it; the system's error if it can't be read
 */
export function readPrivate(file) {
  const opened = openSync(file, 'r');
  try {
    const uid = process.geteuid?.();
    if (uid !== undefined) restrictToOwner(fstatSync(opened), file, uid, (mode) => fchmodSync(opened, mode));
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
function restrictToOwner(stats, file, uid, change) {
  requireOwner(file, stats, uid);
  if (stats.mode & OTHERS) tryToChange(() => change(stats.mode & 0o700));
}

/**
 * @param {string} path
 * @param {number} uid
 * @param {boolean} [isOutOfReach] true if a private parent protects it, whatever its mode
 * @returns {boolean} true if it is a folder
 */
function checkFolder(path, uid, isOutOfReach = false) {
  const stats = statsOf(path);
  if (!stats?.isDirectory()) return false;
  requireOwner(path, stats, uid);
  if (stats.mode & OTHERS_WRITE && !isOutOfReach) {
    throw new DataFolderError(
      `other users can write to ${path}; check that its files are yours and run "chmod go-w" on it, or set INTERLUDE_DATA_DIR to another folder`,
    );
  }
  if (stats.mode & OTHERS && !isLink(path)) tryToChange(() => chmodSync(path, stats.mode & 0o700));
  return true;
}

/**
 * @param {string} folder
 * @param {number} uid
 */
function checkParents(folder, uid) {
  const loose = writableParent(folder, uid);
  if (loose === null) return;
  const reason =
    loose.owner === null
      ? `other users can write to ${loose.path}`
      : `${loose.path} belongs to another user (${loose.owner})`;
  const next = loose.owner === null ? 'run "chmod go-w" on it' : 'make it yours with "chown"';
  throw new DataFolderError(
    `${reason}, who could replace ${folder}; ${next}, or set INTERLUDE_DATA_DIR to a folder elsewhere`,
  );
}

/**
 * @param {string} folder
 * @returns {boolean}
 */
function isPrivate(folder) {
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
  requireOwner(path, stats, uid);
  if (stats.isFile() && stats.mode & OTHERS && !isLink(path)) tryToChange(() => chmodSync(path, stats.mode & 0o700));
}

/**
 * @param {string} path
 * @param {import('node:fs').Stats} stats
 * @param {number} uid
 */
function requireOwner(path, stats, uid) {
  if (stats.uid === uid) return;
  throw new DataFolderError(
    `${path} belongs to another user (${stats.uid}), who could change it; make it yours with "chown" if you trust what is in it, or set INTERLUDE_DATA_DIR to another folder`,
  );
}

/**
 * @param {string} path
 * @returns {import('node:fs').Stats | null} null if it is missing or unreachable; a later write reports that
 */
function statsOf(path) {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/** @param {() => void} change */
function tryToChange(change) {
  try {
    change();
  } catch {
    // The file was removed meanwhile, or the disk is read-only; a later write reports that.
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
    // The folder is missing, or a file is in its place; a later write reports that.
    return [];
  }
}

/**
 * Removes drafts that killed processes left beside a file or folder: `<path>.<pid>`. Keeps those of running processes and
 * files with other names.
 *
 * @param {string} path
 * @param {RegExp} [ending] matches after `<path>.`, with the pid as its first group
 */
export function removeStaleDrafts(path, ending = /^(\d+)$/) {
  const [folder, name] = [dirname(path), basename(path)];
  for (const entry of namesIn(folder)) {
    const pid = entry.startsWith(`${name}.`) ? ending.exec(entry.slice(name.length + 1))?.[1] : undefined;
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      rmSync(join(folder, entry), { recursive: true, force: true });
    } catch {
      // The draft belongs to another user.
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

/**
 * A user who can write to a parent folder can replace the data folder. So every folder above it must belong to trusted
 * users and be writable by them only, as in ssh's StrictModes.
 */

const STICKY = 0o1000;
const GROUP_WRITE = 0o020;
const WORLD_WRITE = 0o002;

/**
 * @param {string} folder may be missing
 * @param {number} uid its owner
 * @returns {{ path: string, owner: number | null } | null} the parent in which another user can rename, with its owner if
 *   that is the reason; null if there is none
 */
function writableParent(folder, uid) {
  const trusted = trustedUsers(uid);
  for (const path of parentsOf(folder)) {
    const stats = orNull(() => statSync(path));
    if (stats === null) continue;
    if (!trusted.has(stats.uid)) return { path, owner: stats.uid };
    // In a sticky folder only owners rename their files.
    if (stats.mode & STICKY) continue;
    const isOpen = stats.mode & WORLD_WRITE || (stats.mode & GROUP_WRITE && !isOwnGroup(stats.gid, uid, trusted));
    if (isOpen) return { path, owner: null };
  }
  return null;
}

/** More links than any system follows. */
const MAX_LINKS = 40;

/**
 * Every folder that a path depends on: its parents, and the parents of each link on the way.
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
      const target = links < MAX_LINKS ? orNull(() => readlinkSync(next)) : null;
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
 * Root, the user, and the owner of this code, who can do anything anyway.
 *
 * @param {number} uid
 * @returns {Set<number>}
 */
function trustedUsers(uid) {
  const trusted = new Set([0, uid, statSync(ownProgram).uid]);
  // In a user namespace, files of the overflow user belong to the host.
  const map = textOf('/proc/self/uid_map').trim();
  if (map !== '' && !/^0\s+0\s+4294967295$/.test(map)) {
    trusted.add(Number(textOf('/proc/sys/kernel/overflowuid') || '65534'));
  }
  return trusted;
}

/**
 * True if a group has trusted users only. Many systems give each user a group that can write wherever the user can.
 * Users that are not in /etc/passwd count as alone in the group with their number.
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
  // Containers run with arbitrary user ids in root's group.
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
 * @param {() => T} read
 * @returns {T | null}
 */
function orNull(read) {
  try {
    return read();
  } catch {
    return null;
  }
}
