import { explainSystemError, formatError } from '../runner/host/system-error.mjs';

/** Messages of start-up code to a person: one line each, and one line when it can't go on. */

/** @param {string} line */
export function say(line) {
  process.stdout.write(`${line}\n`);
}

/** An end without a stack trace. `exitCode` 1: failed, 2: usage, 3: something is not installed. */
export class LaunchError extends Error {
  /**
   * @param {string} message one line that says what to do next
   * @param {number} [exitCode]
   */
  constructor(message, exitCode = 1) {
    super(message);
    this.name = 'LaunchError';
    this.exitCode = exitCode;
  }

  /**
   * @param {unknown} error of writing something in `folder`
   * @param {string} folder
   * @param {string} [elsewhere] what to set to have it in another place
   */
  static ofWriting(error, folder, elsewhere) {
    const known = /** @type {NodeJS.ErrnoException} */ (error);
    return new LaunchError(explainSystemError(known, folder, elsewhere) ?? known.message);
  }
}

/**
 * Prints an error as one line and ends the process.
 *
 * @param {unknown} error
 * @returns {never}
 */
export function giveUp(error) {
  process.stderr.write(`interlude: ${formatError(error)}\n`);
  process.exit(error instanceof LaunchError ? error.exitCode : 1);
}
