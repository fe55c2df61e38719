import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { join, parse, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Who can write in a folder can rename what is in it: the data folder too, and put another one in its place. So the
 * whole chain of folders above it must be of those who are trusted anyway, and closed to others, as ssh has it
 * (StrictModes).
 */

const STICKY = 0o1000;
const GROUP_WRITE = 0o020;
const OTHERS_WRITE = 0o002;

/**
 * @param {string} folder it need not be there yet
 * @param {number} uid whose it is
 * @returns {{ path: string, owner: number | null } | null} the folder above it in which somebody else can rename, and
 *   who, where that is its owner; null when there is none
 */
export function looseParent(folder, uid) {
  const trusted = trustedUsers(uid);
  for (const path of parentsOf(folder)) {
    const stats = orNull(() => statSync(path));
    if (stats === null) continue;
    if (!trusted.has(stats.uid)) return { path, owner: stats.uid };
    // there, only the owner of a name renames it, and that is looked at as well
    if (stats.mode & STICKY) continue;
    const isOpen = stats.mode & OTHERS_WRITE || (stats.mode & GROUP_WRITE && !isOwnGroup(stats.gid, uid, trusted));
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
