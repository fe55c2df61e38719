import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Command } from '@interlude/runner/cli/command';
import { endSignals } from '@interlude/runner/cli/end-signals';
import { CliError, EXIT, type ExitCode, usageError } from '@interlude/runner/cli/exit';
import { readFlags, SERVER_FLAGS, SWITCH, TEXT } from '@interlude/runner/cli/flags';
import { openDataDir, serverEndpoint } from '@interlude/runner/cli/local-server';
import { say } from '@interlude/runner/cli/say';
import { interludeCommand } from '@interlude/runner/shown-command.mjs';
import { type Check, GROUPS, type Group } from './check';
import { conduct } from './conduct';
import { runOurs } from './ours/run-ours';
import { type ConformanceReport, linesOf, reportOf, sumOf } from './report';
import { RUNNER_CHECKS } from './runner/checks';
import { RunnerStage } from './runner/runner-stage';
import { SERVER_CHECKS } from './server/checks';
import { ServerStage } from './server/server-stage';

const HELP = `Usage: ${interludeCommand(['conformance', 'server'])} [options]
       ${interludeCommand(['conformance', 'runner'])} [options] -- <command>

Checks whether a server, or a runner, keeps what PROTOCOL.md says: a verdict for each invariant. docs/conformance.md
tells what is checked, and how a runner is made that can be.

  server   plays runners, right and wrong ones, against a live server, under ids of its own: conformance-…. What it
           tells stays stored; its sessions are ended and archived, and its agents put away
  runner   plays an Interlude that misbehaves to the runner that <command> starts. The runner finds INTERLUDE_URL,
           INTERLUDE_TOKEN, INTERLUDE_DATA_DIR (an empty folder), and in CONFORMANCE_AGENT the command line of the
           agent that it has to run. It is killed and started again several times
  agent    that agent, for trying: it reads JSON lines and answers with JSON lines

  --only GROUP   check this group only; may be repeated: ${GROUPS.join(', ')}
  --timeout S    seconds to wait for what has to come; default 20
  --json         print one JSON document at the end, and nothing else
  --ours         of runner: check Interlude's own runner
  --url URL      of server: the server; default: INTERLUDE_URL, else the one on this machine
  --token-file F of server: a file with its owner's token; default: INTERLUDE_TOKEN, else the one of this machine

Exit codes: 0 nothing failed, 1 something did, 2 usage.`;

type Environment = Record<string, string | undefined>;
type Options = ReturnType<typeof readOptions>;

const program = fileURLToPath(new URL('../launch/interlude.mjs', import.meta.url));
const trivialAgent = fileURLToPath(new URL('./trivial-agent.mjs', import.meta.url));
/** However little answers, a run ends within this time. */
const WHOLE_RUN_MS = 300_000;
const LONGEST_TIMEOUT_S = 120;

export const command: Command = { help: HELP, run: conformance };

async function conformance(argv: string[], env: Environment): Promise<ExitCode> {
  const [mode, ...rest] = argv;
  if (mode === 'agent') return await playAgent(rest);
  if (mode === 'ours') return await playOurs(env);
  if (mode === 'server') return await checkServer(readOptions('conformance server', rest, env), env);
  if (mode === 'runner') return await checkRunner(readOptions('conformance runner', rest, env));
  throw usageError(mode === undefined ? 'name server or runner' : `there is no "${mode}" to check`, 'conformance');
}

async function checkServer(options: Options, env: Environment): Promise<ExitCode> {
  const { withinMs, command, ours } = options;
  if (ours || command.length > 0) throw usageError('a command belongs to runner', 'conformance server');
  const { url, token } = await serverEndpoint(options, env, undefined, 'owner')();
  if (token === undefined)
    throw new CliError(
      EXIT.failed,
      `there is no token for ${url}; give its owner’s with --token-file or INTERLUDE_TOKEN`,
    );
  const { ends: signal, release } = endSignals();
  const stage = new ServerStage({ url, token }, withinMs, signal);
  try {
    await stage.enter();
    return await check('server', url, SERVER_CHECKS, stage, options, signal);
  } finally {
    const left = await stage.close();
    release();
    if (left.length > 0) say(`could not be ended and archived: ${left.join(', ')}`);
  }
}

async function checkRunner(options: Options): Promise<ExitCode> {
  const { withinMs, ours } = options;
  const command = ours ? [process.execPath, program, 'conformance', 'ours'] : options.command;
  if (ours && options.command.length > 0) throw usageError('give a command or --ours', 'conformance runner');
  if (command.length === 0) throw usageError('the command of the runner stands behind --', 'conformance runner');
  const { ends: signal, release } = endSignals();
  const stage = await RunnerStage.open(command, { withinMs, signal });
  try {
    return await check('runner', command.join(' '), RUNNER_CHECKS, stage, options, signal);
  } finally {
    await stage.close();
    release();
  }
}

async function check<Stage>(
  mode: ConformanceReport['mode'],
  target: string,
  table: readonly Check<Stage>[],
  stage: Stage,
  { only, json }: Options,
  signal: AbortSignal,
): Promise<ExitCode> {
  let before: Parameters<typeof linesOf>[1];
  const results = await conduct(table, stage, {
    only,
    withinMs: WHOLE_RUN_MS,
    signal,
    onResult(result) {
      if (!json) process.stdout.write(linesOf(result, before));
      before = result;
    },
  });
  const report = reportOf(mode, target, results);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `\n${sumOf(report)}`);
  if (signal.aborted) return EXIT.interrupted;
  return report.failed === 0 ? EXIT.done : EXIT.failed;
}

/** The runner that `--ours` checks. */
async function playOurs(env: Environment): Promise<ExitCode> {
  const { INTERLUDE_URL: url, INTERLUDE_TOKEN: token, CONFORMANCE_AGENT: agent } = env;
  if (url === undefined || agent === undefined)
    throw usageError('"conformance runner --ours" starts it', 'conformance');
  const { ends, release } = endSignals();
  try {
    const reason = await runOurs({ url, token, agent, env, ends, dataDir: openDataDir(env) });
    if (reason !== null) throw new CliError(EXIT.failed, reason);
    return EXIT.done;
  } finally {
    release();
  }
}

async function playAgent(args: string[]): Promise<ExitCode> {
  const child = spawn(process.execPath, [trivialAgent, ...args], { stdio: 'inherit' });
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  return code === 0 ? EXIT.done : EXIT.failed;
}

function readOptions(command: string, argv: string[], env: Environment) {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const flags = {
    only: { type: 'string', multiple: true },
    timeout: TEXT,
    json: SWITCH,
    ours: SWITCH,
    ...SERVER_FLAGS,
  } as const;
  const { values, positionals } = readFlags(command, own, flags, env);
  if (positionals.length > 0) throw usageError(`${positionals[0]} is too much`, command);
  const { only = [], timeout = '20', json = false, ours = false, url, 'token-file': tokenFile } = values;
  const unknown = only.find((name) => !GROUPS.some((group) => group === name));
  if (unknown !== undefined) throw usageError(`--only is one of ${GROUPS.join(', ')}`, command);
  const seconds = Number(timeout);
  if (!(seconds >= 1 && seconds <= LONGEST_TIMEOUT_S)) {
    throw usageError(`--timeout is a number of seconds, at most ${LONGEST_TIMEOUT_S}`, command);
  }
  const rest = end < 0 ? [] : argv.slice(end + 1);
  return { only: only as Group[], withinMs: seconds * 1_000, json, ours, url, 'token-file': tokenFile, command: rest };
}
