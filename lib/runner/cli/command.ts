import type { ExitCode } from './exit';

/** What stands behind a word of the command line: the `command` of the file of that name. */
export interface Command {
  /** Of what was typed behind its name. */
  help: string | ((argv: string[]) => string);
  run: (argv: string[], env: Record<string, string | undefined>) => Promise<ExitCode>;
}
