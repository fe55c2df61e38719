import { interludeCommand, RUNNER_VERSION } from '../host/own-program.mjs';
import { errorLine } from '../host/system-error.mjs';
import { CliError, type Command, EXIT, type ExitCode } from './command';
import { dataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand([])} <command> [options]

  replay   feed a recording of an agent's run to the dashboard
  demo     a fleet of agents that replay recordings, and one that answers; without end
  runner   run an agent, or stand beside one, and connect it to the dashboard
  hooks    connect the Claude Code of your terminals, or take that back
  mcp      what an agent starts to report its status and to answer messages with tools
  wait     what an agent in a terminal starts in the background to be woken by a message
  outbox   what this machine's outboxes hold, and what to do with records the server refused
  tokens   make, list and revoke the tokens of runners and other programs
  sign-in  print a link that signs a browser in
  db       back up, check, shrink and copy the dashboard's database
  conformance  whether a server, or somebody's runner, keeps to the protocol

  --version   the version of this command line and its runners

With --help each command tells more. On the dashboard's own machine no address and no token is needed;
elsewhere: --url / INTERLUDE_URL, and --token-file / INTERLUDE_TOKEN_FILE or INTERLUDE_TOKEN.

Exit codes: 0 done, 1 failed, 2 usage, 3 something is not installed.`;

/** Each is the `command` of the file of its name (`db` of another room, so that no runner has it), and loaded when it is called for: no start waits for the others. */
const COMMANDS: ReadonlySet<string> = new Set(
  'replay demo runner hooks mcp wait outbox tokens sign-in db conformance'.split(' '),
);

/** Loads a file of this folder, in the way of whoever calls. */
type Load = (name: string) => Promise<{ command: Command }>;

async function commandOf(name: string, load: Load): Promise<Command | undefined> {
  return COMMANDS.has(name) ? (await load(name)).command : undefined;
}

function helpOf(command: Command | undefined, argv: string[]): string {
  const help = command?.help ?? HELP;
  return typeof help === 'string' ? help : help(argv);
}

/** @returns the exit code; errors are one line on stderr */
export async function main(argv: string[], load: Load): Promise<ExitCode> {
  const [name, ...rest] = argv;
  const env = takeOwnEnvironment(process.env);
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
      const [about = '', ...more] = name === 'help' ? rest : [];
      process.stdout.write(`${helpOf(await commandOf(about, load), more)}\n`);
      return name === undefined ? EXIT.usage : EXIT.done;
    }
    if (name === '--version' || name === '-V') {
      process.stdout.write(`interlude ${RUNNER_VERSION}\n`);
      return EXIT.done;
    }
    const command = await commandOf(name, load);
    if (!command)
      throw new CliError(EXIT.usage, `there is no command "${name}"; see "${interludeCommand(['--help'])}"`);
    // Behind "--" it is another program's.
    const own = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest;
    if (own.includes('--help') || own.includes('-h')) {
      process.stdout.write(`${helpOf(command, own)}\n`);
      return EXIT.done;
    }
    return await command.run(rest, env);
  } catch (error) {
    process.stderr.write(`interlude: ${errorLine(error, dataDir(env))}\n`);
    return error instanceof CliError ? error.exitCode : EXIT.failed;
  }
}

type Environment = Record<string, string | undefined>;

/**
 * Removes Interlude's own variables, above all its tokens, from the environment of this process, so that neither code
 * loaded later (an agent's SDK, say) nor child processes find them.
 *
 * @returns the environment as it was
 */
export function takeOwnEnvironment(environment: Environment): Environment {
  const whole = { ...environment };
  for (const name of Object.keys(whole)) if (/^INTERLUDE_/i.test(name)) delete environment[name];
  return whole;
}
