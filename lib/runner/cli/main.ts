import { dataFolder, interludeCommand, RUNNER_VERSION } from '../host/own-program.mjs';
import { formatError } from '../host/system-error.mjs';
import { CliError, type Command, EXIT, type ExitCode } from './command';

/** Commands of `interlude-runner`. Each is the `command` export of the file of its name, loaded on demand. */
const RUNNER_COMMANDS: Readonly<Record<string, string>> = {
  runner: 'run or follow an agent, and connect it to the dashboard',
  hooks: 'connect the Claude Code sessions of your terminals, or disconnect them',
  replay: 'play a recording of an agent to the dashboard',
  mcp: 'serve status and reply tools to an agent (started by the agent)',
  wait: 'wait for a message (started by an agent in a terminal)',
  outbox: "show what this machine's outboxes hold; resend or discard refused records",
};

/** Commands of `interlude`. The launcher implements `start`. */
export const DASHBOARD_COMMANDS: Readonly<Record<string, string>> = {
  start: 'start the dashboard (the default)',
  demo: 'run a fleet of demo agents until stopped',
  ...RUNNER_COMMANDS,
  tokens: 'create, list and revoke tokens for runners and other programs',
  'sign-in': 'print a link that signs a browser in',
  db: "back up, check, shrink and copy the dashboard's database",
  conformance: 'check a server or a runner against the protocol',
};

type Commands = Readonly<Record<string, string>>;

const overview = (commands: Commands) => `Usage: ${interludeCommand([])} <command> [options]

${Object.entries(commands)
  .map(([name, purpose]) => `  ${name.padEnd(13)}${purpose}`)
  .join('\n')}

  --version    print the version

Run a command with --help for its options. On the dashboard's own machine no address or token is needed; elsewhere use
--url or INTERLUDE_URL, and --token-file, INTERLUDE_TOKEN_FILE or INTERLUDE_TOKEN.

Exit codes: 0 done, 1 failed, 2 usage, 3 something is not installed.`;

/** Imports the file of a command. */
type Load = (name: string) => Promise<{ command: Command }>;

/** @returns the exit code; errors are one line on stderr */
export async function main(argv: string[], commands: Commands, load: Load): Promise<ExitCode> {
  const commandOf = async (one: string) => (Object.hasOwn(commands, one) ? (await load(one)).command : undefined);
  const helpOf = (command: Command | undefined, args: string[]) => {
    const help = command?.help ?? overview(commands);
    return typeof help === 'string' ? help : help(args);
  };
  const [name, ...rest] = argv;
  const env = stripOwnEnvironment(process.env);
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
      const [about = '', ...more] = name === 'help' ? rest : [];
      process.stdout.write(`${helpOf(await commandOf(about), more)}\n`);
      return name === undefined ? EXIT.usage : EXIT.done;
    }
    if (name === '--version' || name === '-V') {
      process.stdout.write(`interlude ${RUNNER_VERSION}\n`);
      return EXIT.done;
    }
    const command = await commandOf(name);
    if (!command) throw new CliError(EXIT.usage, `unknown command "${name}"; see "${interludeCommand(['--help'])}"`);
    // After "--" the arguments belong to another program.
    const own = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest;
    if (own.includes('--help') || own.includes('-h')) {
      process.stdout.write(`${helpOf(command, own)}\n`);
      return EXIT.done;
    }
    return await command.run(rest, env);
  } catch (error) {
    process.stderr.write(`interlude: ${formatError(error, dataFolder(env))}\n`);
    return error instanceof CliError ? error.exitCode : EXIT.failed;
  }
}

/** Runs `interlude-runner`: `interlude-runner claude` is `interlude runner claude`. Parameters as for `main`. */
export function runnerMain(argv: string[], load: Load): Promise<ExitCode> {
  const [name = '-', action = '-'] = argv;
  // `hooks` is a command if an action follows, else a kind of agent.
  const isCommand = name === 'hooks' ? !action.startsWith('-') : Object.hasOwn(RUNNER_COMMANDS, name);
  const isKind = !isCommand && name !== 'help' && !name.startsWith('-');
  return main(isKind ? ['runner', ...argv] : argv, RUNNER_COMMANDS, load);
}

type Environment = Record<string, string | undefined>;

/**
 * Removes Interlude's own variables, including its tokens, from the environment of this process, so that neither code
 * loaded later, such as an agent's SDK, nor child processes can read them.
 *
 * @returns the environment as it was
 */
export function stripOwnEnvironment(environment: Environment): Environment {
  const whole = { ...environment };
  for (const name of Object.keys(whole)) if (/^INTERLUDE_/i.test(name)) delete environment[name];
  return whole;
}
