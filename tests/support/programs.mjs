import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../lib/launch/paths.mjs';

const INSTALL_LIMIT_MS = 120_000;

/**
 * Finds a program of a large package used by few tests. Installs it on demand into its own folder.
 *
 * @param {object} wanted
 * @param {string} wanted.what description, as in “no … can be installed”
 * @param {string} wanted.name package name
 * @param {string} wanted.version
 * @param {string} wanted.file the program's path in the package
 * @param {string} wanted.folder folder in `node_modules/.cache`
 * @returns {{ program: string } | { missing: string }} its path, or why it is missing
 */
export function ensureProgram({ what, name, version, file, folder: folderName }) {
  const folder = join(root, 'node_modules', '.cache', folderName);
  const program = join(folder, 'node_modules', name, file);
  if (existsSync(program)) return { program };
  mkdirSync(folder, { recursive: true });
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{"private":true}\n');
  process.stdout.write(`installing ${name}@${version} into ${folder}\n`);
  const args = ['install', `${name}@${version}`, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8', timeout: INSTALL_LIMIT_MS });
  const { stderr, error } = spawnSync(npm, [...args, '--loglevel=error'], options);
  if (existsSync(program)) return { program };
  const why = (error?.message ?? stderr ?? '').trim().split('\n').slice(-3).join('; ');
  return { missing: `no ${what} for ${process.platform}-${process.arch} can be installed (${why})` };
}

const FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];

/**
 * Finds a system program, or installs its Debian package.
 *
 * @param {string} name of the program
 * @param {string} [packageName] if different; '' never installs
 * @returns {{ program: string } | { missing: string }} its path, or why it is missing
 */
export function ensureDebianProgram(name, packageName = name) {
  const there = debianProgram(name);
  if (there) return { program: there };
  if (packageName === '') return { missing: `${name} is not installed` };
  if (!mayInstall()) return { missing: `${name} is not installed. Run "apt-get install ${packageName}" as root` };
  installPackage([packageName]);
  const program = debianProgram(name);
  return program ? { program } : { missing: `apt-get could not install ${packageName} (see its output above)` };
}

/**
 * Path of a system program, or undefined.
 *
 * @param {string} name
 */
export function debianProgram(name) {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((place) => existsSync(place));
}

/** True if Debian packages can be installed here. */
function mayInstall() {
  return process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
}

/**
 * @param {readonly string[]} names package alternatives; installs the first available
 * @returns {boolean} whether one was installed
 */
function installPackage(names) {
  return aptGet('update') && names.some((name) => aptGet('install', '-y', '--no-install-recommends', name));
}

/** @param {string[]} args */
function aptGet(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync('apt-get', args, { stdio: 'inherit', env }).status === 0;
}

/** Debian packages in order of preference: headless-shell uses 40 % less CPU. */
const PACKAGES = ['chromium-headless-shell', 'chromium'];

const USUAL_PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/**
 * Finds Chromium: CHROMIUM_PATH, else one of the usual paths.
 *
 * @returns {string | null}
 */
export function chromiumPath() {
  const named = process.env.CHROMIUM_PATH;
  if (named) return existsSync(named) ? named : null;
  return USUAL_PLACES.find((place) => existsSync(place)) ?? null;
}

/**
 * Installs Debian's Chromium if possible.
 *
 * @returns {string | null} why there is none, or null when there is one
 */
export function ensureChromium() {
  if (chromiumPath()) return null;
  if (process.env.CHROMIUM_PATH) return `CHROMIUM_PATH is ${process.env.CHROMIUM_PATH}, which does not exist`;
  if (!mayInstall()) {
    return 'Chromium not found. Run "apt-get install chromium" as root, or set CHROMIUM_PATH';
  }
  if (!installPackage(PACKAGES)) return 'apt-get could not install Chromium (see its output above)';
  return chromiumPath() ? null : 'apt-get installed no Chromium that is found; name it with CHROMIUM_PATH';
}

const docs = join(root, 'docs');

/** True if the site's packages are installed. */
export function hasDocsSite() {
  return existsSync(join(docs, 'node_modules', 'vitepress'));
}

/** @returns {string | null} why the site's packages can't be installed */
export function ensureDocsSite() {
  if (hasDocsSite()) return null;
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const options = /** @type {const} */ ({ cwd: docs, encoding: 'utf8', timeout: 120_000 });
  const { stderr, error } = spawnSync(npm, ['ci', '--ignore-scripts', '--loglevel=error'], options);
  return hasDocsSite() ? null : `VitePress can't be installed: ${(error?.message ?? stderr).trim()}`;
}
