import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmProgram } from '../runner/host/own-program.mjs';
import { LaunchError, printLine } from './launch-error.mjs';
import { isPacked, root } from './paths.mjs';

/** Installs packages if they differ from package-lock.json. Shows npm's own progress. */
export async function installIfMissing() {
  if (isPacked || packagesAreInstalled()) return;
  printLine('Installing packages (npm ci) …');
  // building needs development packages regardless of NODE_ENV
  const args = ['ci', '--include=dev'];
  const npm = npmProgram();
  const { NODE_ENV: _, ...env } = process.env;
  const installed = await runProgram(npm.program, [...npm.args, ...args], /** @type {NodeJS.ProcessEnv} */ (env));
  if (!installed) throw new LaunchError('npm ci failed; fix the errors above, then start again', 3);
}

/**
 * Compares installed packages with the lock file one by one: file times mean little after a checkout, and the lock file
 * may change without affecting this machine. Optional packages may be for another platform.
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

/**
 * Runs a program that shares our output. Removes INTERLUDE_* from its environment: installing and building run
 * third-party code, which must not see the token.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<boolean>} true for exit code 0; false if it can't be started
 */
export function runProgram(program, args, env = process.env) {
  return new Promise((resolve) => {
    const safeEnv = /** @type {NodeJS.ProcessEnv} */ (
      Object.fromEntries(Object.entries(env).filter(([name]) => !/^INTERLUDE_/i.test(name)))
    );
    const child = spawn(program, args, { cwd: root, env: safeEnv, stdio: 'inherit' });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
