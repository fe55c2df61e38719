import { spawn } from 'node:child_process';
import { root } from './root.mjs';

/**
 * Runs a program that shares our output, without Interlude's own variables in its environment: installing and building
 * run code of many packages, which have no use for a token.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<boolean>} whether it ended with 0; false as well when it is not there
 */
export function runProgram(program, args, env = process.env) {
  return new Promise((resolve) => {
    const given = /** @type {NodeJS.ProcessEnv} */ (
      Object.fromEntries(Object.entries(env).filter(([name]) => !/^INTERLUDE_/i.test(name)))
    );
    const child = spawn(program, args, { cwd: root, env: given, stdio: 'inherit' });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
