import { type ParseArgsConfig, parseArgs, stripVTControlCharacters } from 'node:util';
import { idSchema } from '@interlude/protocol/field-schemas';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { interludeCommand } from '../host/own-program.mjs';
import { misreadLevel } from '../logger/level-switch';

/** What stands behind a word of the command line: the `command` of the file of that name. */
export interface Command {
  /** Of what was typed behind its name. */
  help: string | ((argv: string[]) => string);
  run: (argv: string[], env: Record<string, string | undefined>) => Promise<ExitCode>;
}

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

/** One line for people, on stderr, apart from a command's output. */
export function say(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

export const TEXT = { type: 'string' } as const;
export const SWITCH = { type: 'boolean' } as const;
/** The flags of every command that talks to the dashboard. */
export const SERVER_FLAGS = { url: TEXT, 'token-file': TEXT };
/** What the help says of the second. */
export const TOKEN_HELP = "a file with the dashboard's token; default: INTERLUDE_TOKEN, else that of this machine";
/** The same where `--url` is the agent's address. */
export const DASHBOARD_FLAGS = { ...SERVER_FLAGS, dashboard: TEXT };

/** Flags whose values are ids. */
const ID_FLAGS = ['session', 'agent', 'resume'];

/**
 * The flags and arguments of a command. What the server would refuse record by record is refused here.
 *
 * @param command as typed: `runner claude`
 * @param flags those with the names `session`, `agent`, `resume` are ids, `url` and `dashboard` are addresses
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
    throw usageError(`--${name} is an id of 1 to ${MAX_ID_LENGTH} characters, and not . or ..`, command);
  }
  const ofServer = flags.dashboard === undefined ? 'url' : 'dashboard';
  const fromEnvironment = flags[ofServer] === undefined ? undefined : env.INTERLUDE_URL;
  for (const url of [values.url, values[ofServer] ?? fromEnvironment]) {
    if (typeof url !== 'string' || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) continue;
    throw usageError(`${url} is not an http address`, command);
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
 * `--token` is in no help: what stands in the arguments stands in the list of processes. Scripts that were written for it
 * go on, and are told.
 *
 * @param env gets the token, which counts for more than what else it says of one
 */
function withoutToken(argv: string[], env: Record<string, string | undefined>): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const at = argv.findIndex((one, index) => index < end && (one === '--token' || one.startsWith('--token=')));
  if (at < 0) return argv;
  const [flag = '', next] = argv.slice(at);
  const isApart = flag === '--token';
  const token = isApart ? next : flag.slice('--token='.length);
  if (token) {
    env.INTERLUDE_TOKEN = token;
    delete env.INTERLUDE_TOKEN_FILE;
  }
  process.stderr.write(
    'interlude: --token shows the token to everybody on this machine; put it into a file for --token-file, or into INTERLUDE_TOKEN\n',
  );
  return argv.toSpliced(at, isApart ? 2 : 1);
}

/** Columns as wide as needed; foreign text must not move the terminal's cursor. */
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

/** How often to check whether npm is still there. */
const LOOK_MS = 1_000;

interface EndSignals {
  ends: AbortSignal;
  /** Fires at the second request. */
  hurries: AbortSignal;
  release: () => void;
}

/**
 * How a command is asked to end: by Ctrl-C or SIGTERM. A kill meant for the npm that started it ends npm and the shell
 * in between and never arrives here, but the parent process changes.
 *
 * @param canHurry the first request lets it finish what it is doing, the second ends that now. Any further request ends
 *   the process at once
 */
export function endSignals(canHurry = false): EndSignals {
  const ends = new AbortController();
  const hurries = new AbortController();
  const ask = () => {
    if (ends.signal.aborted && (hurries.signal.aborted || !canHurry)) process.exit(130);
    (ends.signal.aborted ? hurries : ends).abort();
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, ask);
  const parent = process.ppid;
  const orphaned = () => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    ask();
  };
  const isOfNpm = process.env.npm_lifecycle_event !== undefined;
  const looking = isOfNpm ? setInterval(orphaned, LOOK_MS).unref() : undefined;
  return {
    ends: ends.signal,
    hurries: hurries.signal,
    release() {
      for (const name of names) process.off(name, ask);
      clearInterval(looking);
    },
  };
}

/** Resolves once the signal is aborted. */
export function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The level a runner's log begins with. A bad one is reported at once, because it would be missed when it matters. */
export function logLevelOf(env: Record<string, string | undefined>): string | undefined {
  const misread = misreadLevel(env.INTERLUDE_LOG_LEVEL);
  if (misread !== null) process.stderr.write(`interlude: ${misread}\n`);
  return env.INTERLUDE_LOG_LEVEL;
}
