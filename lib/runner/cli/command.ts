import { type ParseArgsConfig, parseArgs, stripVTControlCharacters } from 'node:util';
import { idSchema } from '@interlude/protocol/field-schemas';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { isHttpUrl, truncateText } from '@interlude/protocol/text';
import { isContextRatioEnabled } from '../host/context-ratio';
import { interludeCommand } from '../host/own-program.mjs';
import { invalidLevelWarning } from '../logger/level-switch';

/** A subcommand: the `command` export of the file named after it. */
export interface Command {
  /** @param argv the arguments after its name */
  help: string | ((argv: string[]) => string);
  run: (argv: string[], env: Record<string, string | undefined>) => Promise<ExitCode>;
}

export const EXIT = { done: 0, failed: 1, usage: 2, notInstalled: 3, timedOut: 124, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command without a stack trace. `message` is one line with the next step. */
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

/** Prints a line on stderr, separate from the command's output. */
export function printNotice(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

export const TEXT = { type: 'string' } as const;
export const SWITCH = { type: 'boolean' } as const;
export const SERVER_FLAGS = { url: TEXT, 'token-file': TEXT };
export const TOKEN_HELP = "read the dashboard's token from this file; default: INTERLUDE_TOKEN, else this machine's";
/** For commands whose `--url` is the agent's address. */
export const DASHBOARD_FLAGS = { ...SERVER_FLAGS, dashboard: TEXT };

const ID_FLAGS = ['session', 'agent', 'resume'];

/**
 * Parses the flags and arguments of a command, and validates ids and addresses.
 *
 * @param command as typed: `runner claude`
 * @param flags `session`, `agent` and `resume` are ids; `url` and `dashboard` are addresses
 * @throws CliError with exit code 2
 */
export function readFlags<const Flags extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  argv: string[],
  flags: Flags,
  env: Record<string, string | undefined>,
) {
  const args = 'token-file' in flags ? withoutToken(argv, env) : argv;
  const parsed = parse();
  const values = parsed.values as Record<string, unknown>;
  for (const name of ID_FLAGS) {
    if (values[name] === undefined || idSchema.safeParse(values[name]).success) continue;
    throw usageError(`--${name} must be an id of 1 to ${MAX_ID_LENGTH} characters, other than . and ..`, command);
  }
  const dashboardFlag = flags.dashboard === undefined ? 'url' : 'dashboard';
  const environmentUrl = flags[dashboardFlag] === undefined ? undefined : env.INTERLUDE_URL;
  for (const url of [values.url, values[dashboardFlag] ?? environmentUrl]) {
    if (typeof url !== 'string' || isHttpUrl(url)) continue;
    throw usageError(`${url} is not an http address; use one such as http://127.0.0.1:4319`, command);
  }
  return parsed;

  function parse() {
    try {
      return parseArgs({ args, options: flags, allowPositionals: true });
    } catch (error) {
      throw usageError((error as Error).message.split('. ')[0] ?? '', command);
    }
  }
}

/**
 * Moves the undocumented `--token` into the environment, with a warning: every user can read it in the process list.
 *
 * @param env receives the token, which replaces the one it names
 */
function withoutToken(argv: string[], env: Record<string, string | undefined>): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const at = argv.findIndex((one, index) => index < end && (one === '--token' || one.startsWith('--token=')));
  if (at < 0) return argv;
  const [flag = '', next] = argv.slice(at);
  const isSeparate = flag === '--token';
  const token = isSeparate ? next : flag.slice('--token='.length);
  if (token) {
    env.INTERLUDE_TOKEN = token;
    delete env.INTERLUDE_TOKEN_FILE;
  }
  process.stderr.write(
    'interlude: --token exposes the token to every user of this machine; pass it with --token-file or INTERLUDE_TOKEN\n',
  );
  return argv.toSpliced(at, isSeparate ? 2 : 1);
}

/** Prints aligned columns. Removes control characters, which would move the terminal's cursor. */
export function table(head: string[], rows: string[][]): void {
  const safe = [head, ...rows].map((row) =>
    row.map((cell) => stripVTControlCharacters(cell).replace(/\s+/g, ' ').slice(0, 120)),
  );
  const widths = head.map((_, column) => Math.max(...safe.map((row) => row[column]?.length ?? 0)));
  for (const row of safe)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const PARENT_POLL_MS = 1_000;

interface StopSignals {
  ends: AbortSignal;
  /** Aborts at the second request. */
  hurries: AbortSignal;
  release: () => void;
}

/**
 * Turns Ctrl-C, SIGTERM and SIGHUP into abort signals. When the npm that started this process is killed, no signal
 * arrives, but the parent process changes, so that change counts as well.
 *
 * @param canHurry the first request aborts `ends`, the second `hurries`; any further request exits the process
 */
export function stopSignals(canHurry = false): StopSignals {
  const ends = new AbortController();
  const hurries = new AbortController();
  const request = () => {
    if (ends.signal.aborted && (hurries.signal.aborted || !canHurry)) process.exit(130);
    (ends.signal.aborted ? hurries : ends).abort();
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, request);
  const parent = process.ppid;
  const checkParent = () => {
    if (process.ppid === parent) return;
    clearInterval(polling);
    request();
  };
  const isChildOfNpm = process.env.npm_lifecycle_event !== undefined;
  const polling = isChildOfNpm ? setInterval(checkParent, PARENT_POLL_MS).unref() : undefined;
  return {
    ends: ends.signal,
    hurries: hurries.signal,
    release() {
      for (const name of names) process.off(name, request);
      clearInterval(polling);
    },
  };
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** True unless INTERLUDE_CONTEXT_RATIO is `off`. Warns immediately if it is invalid. */
export function contextRatioOf(env: Record<string, string | undefined>): boolean {
  const named = env.INTERLUDE_CONTEXT_RATIO?.trim() ?? '';
  if (!/^(|on|off)$/i.test(named)) {
    printNotice(`INTERLUDE_CONTEXT_RATIO is ${JSON.stringify(truncateText(named, 100))}, not on or off; using on`);
  }
  return isContextRatioEnabled(env);
}

/** INTERLUDE_LOG_LEVEL. Warns immediately if it is invalid. */
export function logLevelOf(env: Record<string, string | undefined>): string | undefined {
  const warning = invalidLevelWarning(env.INTERLUDE_LOG_LEVEL);
  if (warning !== null) printNotice(warning);
  return env.INTERLUDE_LOG_LEVEL;
}
