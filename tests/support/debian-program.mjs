import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];

/**
 * A program of the system: one that is there, else Debian's package of it, where that can be installed.
 *
 * @param {string} name of the program
 * @param {string} [packageName] where it is another; '' where the program must be there already
 * @returns {{ program: string } | { missing: string }} where it is, or why it is not
 */
export function ensureDebianProgram(name, packageName = name) {
  const there = placeOf(name);
  if (there) return { program: there };
  if (packageName === '') return { missing: `there is no ${name} on this machine` };
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    return { missing: `there is no ${name}; install it ("apt-get install ${packageName}" as root)` };
  }
  aptGet('update');
  aptGet('install', '-y', '--no-install-recommends', packageName);
  const program = placeOf(name);
  return program ? { program } : { missing: `apt-get could not install ${packageName} (its output is above)` };
}

/** @param {string} name */
function placeOf(name) {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((place) => existsSync(place));
}

/** @param {string[]} args */
function aptGet(...args) {
  spawnSync('apt-get', args, { stdio: 'inherit', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
}
