import { dataFolder, interludeCommand, RUNNER_VERSION } from '../host/own-program.mjs';
import { formatError } from '../host/system-error.mjs';
import { listKinds, listRows } from '../sources/kind-titles';
import { CliError, type Command, EXIT, type ExitCode } from './command';

/** Commands of `interlude-runner`. Each is the `command` export of the file of its name, loaded on demand. */
const RUNNER_COMMANDS = {
  runner: 'run or follow an agent, and connect it to the dashboard',
  hooks: 'connect the Claude Code sessions of your terminals, or disconnect them',
  replay: 'play a recording of an agent to the dashboard',
  mcp: 'serve status and reply tools to an agent (started by the agent)',
  wait: 'wait for a message (started by an agent in a terminal)',
  outbox: "show what this machine's outboxes hold; resend or discard refused records",
};

/** Commands of `interlude`. The launcher implements `start`. */
const DASHBOARD_COMMANDS = {
  start: 'start the dashboard (the default)',
  demo: 'run a fleet of demo agents until stopped',
  ...RUNNER_COMMANDS,
  tokens: 'create, list and revoke tokens for runners and other programs',
  'sign-in': 'print a link that signs a browser in',
  db: "back up, check, shrink and copy the dashboard's database",
  conformance: 'check a server or a runner against the protocol',
};

type Commands = Readonly<Record<string, string>>;

const dashboardOverview = () => `Usage: ${interludeCommand([])} <command> [options]

${listRows(DASHBOARD_COMMANDS)}
${OVERVIEW_END}`;

function runnerOverview(): string {
  const { runner: _, hooks, ...commands } = RUNNER_COMMANDS;
  const others = Object.keys(DASHBOARD_COMMANDS).filter((name) => !Object.hasOwn(RUNNER_COMMANDS, name));
  return `Usage: ${interludeCommand(['runner'])} <kind> [options]
       ${interludeCommand([])} <command> [options]

Kinds of agents to run or follow, and to connect to the dashboard:
${listKinds()}

Commands:
${listRows({ 'hooks install': hooks, ...commands })}

The dashboard's package has more commands (${others.join(', ')}): npx interlude --help
${OVERVIEW_END}`;
}

const OVERVIEW_END = `
  --version      print the version

Run a command with --help for its options. On the dashboard's own machine no address or token is needed; elsewhere use
--url or INTERLUDE_URL, and --token-file, INTERLUDE_TOKEN_FILE or INTERLUDE_TOKEN.

Exit codes: 0 done, 1 failed, 2 usage, 3 something is not installed.`;

/** Imports the file of a command. */
type Load = (name: string) => Promise<{ command: Command }>;

/** Runs `interlude`. @returns the exit code; errors are one line on stderr */
export function main(argv: string[], load: Load): Promise<ExitCode> {
  return run({ name: 'interlude', commands: DASHBOARD_COMMANDS, overview: dashboardOverview }, argv, load);
}

interface Program {
  name: string;
  commands: Commands;
  overview: () => string;
}

async function run({ name: program, commands, overview }: Program, argv: string[], load: Load): Promise<ExitCode> {
  const commandOf = async (one: string) => (Object.hasOwn(commands, one) ? (await load(one)).command : undefined);
  const helpOf = (command: Command | undefined, args: string[]) => {
    const help = command?.help ?? overview();
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
      process.stdout.write(`${program} ${RUNNER_VERSION}\n`);
      return EXIT.done;
    }
    const command = await commandOf(name);
    if (!command) throw new CliError(EXIT.usage, unknownCommand(name));
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

function unknownCommand(name: string): string {
  if (!Object.hasOwn(DASHBOARD_COMMANDS, name))
    return `unknown command "${name}"; see "${interludeCommand(['--help'])}"`;
  return `"${name}" is a command of the dashboard's package; where that is installed, run "${interludeCommand([name])}"`;
}

/** Runs `interlude-runner`: `interlude-runner claude` is `interlude runner claude`. Parameters as for `main`. */
export function runnerMain(argv: string[], load: Load): Promise<ExitCode> {
  const [name = '-', action = '-'] = argv;
  // `hooks` is a command if an action follows, else a kind of agent.
  const isCommand = name === 'hooks' ? !action.startsWith('-') : Object.hasOwn(DASHBOARD_COMMANDS, name);
  const isKind = !isCommand && name !== 'help' && !name.startsWith('-');
  const program = { name: 'interlude-runner', commands: RUNNER_COMMANDS, overview: runnerOverview };
  return run(program, isKind ? ['runner', ...argv] : argv, load);
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
