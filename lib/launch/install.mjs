import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmProgram } from '../runner/host/own-program.mjs';
import { isPacked } from './packed.mjs';
import { root } from './root.mjs';
import { runProgram } from './run-program.mjs';
import { LaunchError, say } from './say.mjs';

/** Installs the packages unless they are those of package-lock.json. Shows npm's own progress. */
export async function installWhatIsMissing() {
  if (isPacked || packagesAreInstalled()) return;
  say('Installing packages (npm ci) …');
  // Building needs the development packages too, whatever NODE_ENV says.
  const args = ['ci', '--include=dev'];
  const npm = npmProgram();
  const { NODE_ENV: _, ...env } = process.env;
  const installed = await runProgram(npm.program, [...npm.args, ...args], /** @type {NodeJS.ProcessEnv} */ (env));
  if (!installed) throw new LaunchError('npm ci failed (its output is above); mend that and start again', 3);
}

/**
 * Compares what npm has installed with the lock file, package by package: file times say little after a checkout, and a
 * lock file may change without a change for this machine. Optional packages may be for another platform.
 */
export function packagesAreInstalled() {
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const present = packagesOf(join(root, 'node_modules', '.package-lock.json'));
  if (!wanted || !present) return false;
  return Object.entries(wanted).every(([path, { version, optional, devOptional }]) => {
    if (path === '') return true;
    return present[path] ? present[path].version === version : optional === true || devOptional === true;
  });
}

/**
 * @param {string} file
 * @returns {Record<string, { version?: string, optional?: boolean, devOptional?: boolean }> | null}
 */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return null;
  }
}
