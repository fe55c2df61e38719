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
  const there = debianProgram(name);
  if (there) return { program: there };
  if (packageName === '') return { missing: `there is no ${name} on this machine` };
  if (!mayInstall()) return { missing: `there is no ${name}; install it ("apt-get install ${packageName}" as root)` };
  installPackage([packageName]);
  const program = debianProgram(name);
  return program ? { program } : { missing: `apt-get could not install ${packageName} (its output is above)` };
}

/**
 * Where a program of the system is, if it is there.
 *
 * @param {string} name
 */
export function debianProgram(name) {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((place) => existsSync(place));
}

/** Whether packages of Debian's can be installed here. */
export function mayInstall() {
  return process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
}

/**
 * @param {readonly string[]} names of packages, of which one is enough: the first that there is
 * @returns {boolean} whether one was installed
 */
export function installPackage(names) {
  return aptGet('update') && names.some((name) => aptGet('install', '-y', '--no-install-recommends', name));
}

/** @param {string[]} args */
function aptGet(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync('apt-get', args, { stdio: 'inherit', env }).status === 0;
}
