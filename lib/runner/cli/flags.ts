import { type ParseArgsConfig, parseArgs } from 'node:util';
import { idSchema } from '@interlude/protocol/field-schemas';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { usageError } from './exit';

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
