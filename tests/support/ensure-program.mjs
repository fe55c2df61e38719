import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../lib/launch/paths.mjs';

const INSTALL_LIMIT_MS = 120_000;

/**
 * A program out of a package that only some tests run. It is large, so it is installed into a folder of its own and only
 * when they do.
 *
 * @param {object} wanted
 * @param {string} wanted.what it is, as in “no … can be installed”
 * @param {string} wanted.name of the package
 * @param {string} wanted.version
 * @param {string} wanted.file the program's place in it
 * @param {string} wanted.folder its name below `node_modules/.cache`
 * @returns {{ program: string } | { missing: string }} where it is, or why it is not
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
