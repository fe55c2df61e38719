import { interludeCommand } from '../shown-command.mjs';

/** How a command ends. Scripts and `npm` read the code, people the one line. */
export const EXIT = { done: 0, failed: 1, usage: 2, notInstalled: 3, nothingCame: 124, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An end without a stack trace: `message` is one line that says what to do next. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

export function usageError(message: string, command: string): CliError {
  return new CliError(EXIT.usage, `${message}; see "${interludeCommand([...command.split(' '), '--help'])}"`);
}
