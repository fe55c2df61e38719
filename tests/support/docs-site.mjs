import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../lib/launch/paths.mjs';

const docs = join(root, 'docs');

/** Whether the packages of the site are installed. */
export function hasDocsSite() {
  return existsSync(join(docs, 'node_modules', 'vitepress'));
}

/** @returns {string | null} why the packages of the site can't be installed */
export function ensureDocsSite() {
  if (hasDocsSite()) return null;
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const options = /** @type {const} */ ({ cwd: docs, encoding: 'utf8', timeout: 120_000 });
  const { stderr, error } = spawnSync(npm, ['ci', '--ignore-scripts', '--loglevel=error'], options);
  return hasDocsSite() ? null : `VitePress can't be installed: ${(error?.message ?? stderr).trim()}`;
}
