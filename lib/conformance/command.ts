import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  CliError,
  type Command,
  EXIT,
  type ExitCode,
  printNotice,
  readFlags,
  SERVER_FLAGS,
  SWITCH,
  stopSignals,
  TEXT,
  usageError,
} from '@interlude/runner/cli/command';
import { openDataDir, serverEndpoint } from '@interlude/runner/cli/dashboard';
import { interludeCommand } from '@interlude/runner/host/own-program.mjs';
import {
  type Check,
  type CheckResult,
  type ConformanceReport,
  formatResult,
  formatSummary,
  GROUPS,
  type Group,
  reportOf,
  runChecks,
} from './check';
import * as runnerCommands from './runner/command-checks';
import * as delivery from './runner/delivery-checks';
import { RunnerTarget } from './runner/runner-target';
import * as runnerSessions from './runner/session-checks';
import * as access from './server/access-checks';
import * as serverCommands from './server/command-checks';
import * as ingest from './server/ingest-checks';
import { ServerTarget } from './server/server-target';
import * as serverSessions from './server/session-checks';
import { runTrivialRunner } from './trivial-runner';

const HELP = `Usage: ${interludeCommand(['conformance', 'server'])} [options]
       ${interludeCommand(['conformance', 'runner'])} [options] -- <command>

Checks a server or a runner against PROTOCOL.md, one verdict per invariant. docs/conformance.md lists the checks and
explains how to write a runner that can be checked.

  server           simulate correct and faulty runners against a live server, under separate ids (conformance-…).
                   Their records stay stored; their sessions are ended and archived, and their agents retired
  runner           start a runner with <command> in front of a misbehaving Interlude, and kill and restart it
                   several times. Its environment has INTERLUDE_URL, INTERLUDE_TOKEN, INTERLUDE_DATA_DIR (an empty
                   folder) and CONFORMANCE_AGENT, the command line of the agent to run
  agent            run that agent by hand: it reads and writes JSON lines

  --only GROUP     check this group only; may be repeated: ${GROUPS.join(', ')}
  --timeout S      wait this many seconds for each expected reaction; default 20
  --json           print only one JSON document, at the end
  --ours           runner only: check Interlude's own runner
  --url URL        server only: the server; default: INTERLUDE_URL, else the one on this machine
  --token-file F   server only: read the owner's token from this file; default: INTERLUDE_TOKEN, else this machine's

Exit codes: 0 all checks passed or were skipped, 1 a check failed, 2 usage.`;

type Environment = Record<string, string | undefined>;
type Options = ReturnType<typeof readOptions>;

const program = fileURLToPath(new URL('../launch/interlude.mjs', import.meta.url));
const trivialAgent = fileURLToPath(new URL('./trivial-agent.mjs', import.meta.url));
const RUN_TIMEOUT_MS = 300_000;
const MAX_TIMEOUT_S = 120;

export const command: Command = { help: HELP, run: conformance };

async function conformance(argv: string[], env: Environment): Promise<ExitCode> {
  const [mode, ...rest] = argv;
  if (mode === 'agent') return await runAgent(rest);
  if (mode === 'ours') return await runOurs(env);
  if (mode === 'server') return await checkServer(readOptions('conformance server', rest, env), env);
  if (mode === 'runner') return await checkRunner(readOptions('conformance runner', rest, env));
  const problem = mode === undefined ? 'nothing to check' : `cannot check "${mode}"`;
  throw usageError(`${problem}; name server or runner`, 'conformance');
}

async function checkServer(options: Options, env: Environment): Promise<ExitCode> {
  const { timeoutMs, command, ours } = options;
  if (ours || command.length > 0)
    throw usageError('a command and --ours work only with "conformance runner"', 'conformance server');
  const { url, token } = await serverEndpoint(options, env, undefined, 'owner')();
  if (token === undefined)
    throw new CliError(EXIT.failed, `no token for ${url}; pass its owner’s with --token-file or INTERLUDE_TOKEN`);
  const { ends: signal, release } = stopSignals();
  const target = new ServerTarget({ url, token }, timeoutMs, signal);
  try {
    await target.connect();
    return await check('server', url, SERVER_CHECKS, target, options, signal);
  } finally {
    const failed = await target.close();
    release();
    if (failed.length > 0)
      printNotice(`could not end and archive these sessions; archive them in the dashboard: ${failed.join(', ')}`);
  }
}

async function checkRunner(options: Options): Promise<ExitCode> {
  const { timeoutMs, ours } = options;
  const command = ours ? [process.execPath, program, 'conformance', 'ours'] : options.command;
  if (ours && options.command.length > 0) throw usageError('pass either a command or --ours', 'conformance runner');
  if (command.length === 0) throw usageError('put the runner command after --', 'conformance runner');
  const { ends: signal, release } = stopSignals();
  const target = await RunnerTarget.open(command, { timeoutMs, signal });
  try {
    return await check('runner', command.join(' '), RUNNER_CHECKS, target, options, signal);
  } finally {
    await target.close();
    release();
  }
}

async function check<Target>(
  mode: ConformanceReport['mode'],
  name: string,
  table: readonly Check<Target>[],
  target: Target,
  { only, json }: Options,
  signal: AbortSignal,
): Promise<ExitCode> {
  let previous: CheckResult | undefined;
  const results = await runChecks(table, target, {
    only,
    timeoutMs: RUN_TIMEOUT_MS,
    signal,
    onResult(result) {
      if (!json) process.stdout.write(formatResult(result, previous));
      previous = result;
    },
  });
  const report = reportOf(mode, name, results);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `\n${formatSummary(report)}`);
  if (signal.aborted) return EXIT.interrupted;
  return report.failed === 0 ? EXIT.done : EXIT.failed;
}

/** Runs the runner that `--ours` checks. */
async function runOurs(env: Environment): Promise<ExitCode> {
  const { INTERLUDE_URL: url, INTERLUDE_TOKEN: token, CONFORMANCE_AGENT: agent } = env;
  if (url === undefined || agent === undefined)
    throw usageError('run "conformance runner --ours", which sets the environment of "ours"', 'conformance');
  const { ends: signal, release } = stopSignals();
  try {
    const reason = await runTrivialRunner({ url, token, agent, env, signal, dataDir: openDataDir(env) });
    if (reason !== null) throw new CliError(EXIT.failed, reason);
    return EXIT.done;
  } finally {
    release();
  }
}

async function runAgent(args: string[]): Promise<ExitCode> {
  const child = spawn(process.execPath, [trivialAgent, ...args], { stdio: 'inherit' });
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  return code === 0 ? EXIT.done : EXIT.failed;
}

function readOptions(name: string, argv: string[], env: Environment) {
  const end = argv.indexOf('--');
  const [own, command] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end + 1)];
  const flags = {
    only: { type: 'string', multiple: true },
    timeout: TEXT,
    json: SWITCH,
    ours: SWITCH,
    ...SERVER_FLAGS,
  } as const;
  const { values, positionals } = readFlags(name, own, flags, env);
  if (positionals.length > 0)
    throw usageError(`unexpected argument "${positionals[0]}"; put the runner command after --`, name);
  const { only = [], timeout = '20', json = false, ours = false, url, 'token-file': tokenFile } = values;
  const isGroup = (one: string): one is Group => GROUPS.some((group) => group === one);
  if (!only.every(isGroup)) throw usageError(`--only must be one of ${GROUPS.join(', ')}`, name);
  const seconds = Number(timeout);
  if (!(seconds >= 1 && seconds <= MAX_TIMEOUT_S)) {
    throw usageError(`--timeout must be a number of seconds, at most ${MAX_TIMEOUT_S}`, name);
  }
  return { only, timeoutMs: seconds * 1_000, json, ours, url, 'token-file': tokenFile, command };
}

/** Every check of `interlude conformance server`, in the order of the run. */
export const SERVER_CHECKS: readonly Check<ServerTarget>[] = [
  ...ingest.OUTBOX,
  ...ingest.ANSWERS,
  ...ingest.LIMITS,
  ...serverSessions.TURNS,
  ...serverSessions.TASKS,
  ...serverSessions.REQUESTS,
  ...serverCommands.COMMANDS,
  ...serverCommands.LIVENESS,
  ...serverCommands.LOG_LEVEL,
  ...access.SECRETS,
  ...access.NEVER_IN_THE_WAY,
  ...serverSessions.ORDER,
];

/** Every check of `interlude conformance runner`, in the order of the run. The last ones check the run as a whole. */
export const RUNNER_CHECKS: readonly Check<RunnerTarget>[] = [
  ...runnerSessions.TURNS,
  ...runnerSessions.TASKS,
  ...runnerSessions.REQUESTS,
  ...runnerCommands.COMMANDS,
  ...runnerCommands.LOG_LEVEL,
  ...delivery.SECRETS,
  ...runnerSessions.ORDER,
  ...delivery.LIMITS,
  ...delivery.NEVER_IN_THE_WAY,
  ...runnerCommands.LIVENESS,
  ...delivery.ANSWERS,
  ...delivery.OUTBOX,
];
