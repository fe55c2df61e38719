import { explainSystemError, formatError } from '../runner/host/system-error.mjs';

/** @param {string} line */
export function printLine(line) {
  process.stdout.write(`${line}\n`);
}

/** A failure reported without a stack trace. `exitCode`: 1 failure, 2 usage, 3 missing dependency. */
export class LaunchError extends Error {
  /**
   * @param {string} message one line with the fix
   * @param {number} [exitCode]
   */
  constructor(message, exitCode = 1) {
    super(message);
    this.name = 'LaunchError';
    this.exitCode = exitCode;
  }

  /**
   * @param {unknown} error of a write in `folder`
   * @param {string} folder
   * @param {string} [elsewhere] the setting that selects another folder
   */
  static ofWriting(error, folder, elsewhere) {
    const known = /** @type {NodeJS.ErrnoException} */ (error);
    return new LaunchError(explainSystemError(known, folder, elsewhere) ?? known.message);
  }
}

/**
 * Prints an error as one line and exits.
 *
 * @param {unknown} error
 * @returns {never}
 */
export function exitWithError(error) {
  process.stderr.write(`interlude: ${formatError(error)}\n`);
  process.exit(error instanceof LaunchError ? error.exitCode : 1);
}
