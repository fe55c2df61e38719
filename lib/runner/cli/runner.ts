import { join } from 'node:path';
import { MAX_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { claimOutbox } from '../host/claim-outbox';
import { controlPath } from '../host/control-file';
import { workspaceNote } from '../host/first-message';
import { interludeCommand } from '../host/own-program.mjs';
import { ProcessLockedError } from '../host/process-lock';
import { RunnerHost } from '../host/runner-host';
import { withDeadline } from '../host/server-request';
import { TroubleNotices } from '../logger/delivery-journal';
import { Redactor } from '../logger/redactor';
import { listKinds } from '../sources/kind-titles';
import { KINDS } from '../sources/kinds';
import type { PreparedRunner, RunnerCall, RunnerKind } from '../sources/runner-kind';
import { limitsOf } from '../sources/runner-kind';
import type { Command } from './command';
import {
  aborted,
  CliError,
  contextRatioOf,
  DASHBOARD_FLAGS,
  EXIT,
  type ExitCode,
  logLevelOf,
  printNotice,
  readFlags,
  SERVER_FLAGS,
  SWITCH,
  stopSignals,
  TEXT,
  TOKEN_HELP,
  usageError,
} from './command';
import { openDataDir, pagesUrl, serverEndpoint, serverKey, tokenAdvice, tokenSource } from './dashboard';
import { Recorder } from './recording';

const HELP = `Usage: ${interludeCommand(['runner'])} <kind> [options]

Runs or follows an agent, and connects it to the dashboard. Kinds:

${listKinds()}

  --session ID     use this session; the default depends on the kind
  --agent ID       appear as this agent
  --record FILE    record the traffic between runner and agent for "replay", without secrets (not for hooks)
  --token-file F   ${TOKEN_HELP}

For the options of a kind: ${interludeCommand(['runner', 'codex', '--help'])}`;

function runnerHelp([name = '']: string[]): string {
  return (Object.hasOwn(KINDS, name) ? KINDS[name]?.help : undefined) ?? HELP;
}

type Environment = Record<string, string | undefined>;

const FLUSH_MS = 5_000;
/** Maximum time for open work after a person ended the session in the dashboard. */
const ENDED_WITHIN_MS = 5_000;
/** Maximum time for the dashboard to receive the session before its address is printed. */
const ARRIVAL_MS = 3_000;
const COMMON = { agent: TEXT, session: TEXT, record: TEXT };

export const command: Command = { help: runnerHelp, run: runner };

async function runner(argv: string[], env: Environment): Promise<ExitCode> {
  const [name, ...rest] = argv;
  const kind = name !== undefined && Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  if (kind !== undefined) return await run(readCall(`runner ${name}`, kind, rest, env), kind);
  const problem = name === undefined || name.startsWith('-') ? 'name a kind of agent' : `unknown kind "${name}"`;
  const kinds = Object.keys(KINDS).join(', ');
  throw new CliError(EXIT.usage, `${problem} (${kinds}); see "${interludeCommand(['runner', '--help'])}"`);
}

async function run(call: RunnerCall, kind: RunnerKind): Promise<ExitCode> {
  const prepared = await kind.prepare(call);
  const server = {
    url: call.flag(kind.urlNamesAgent ? 'dashboard' : 'url'),
    'token-file': call.flag('token-file'),
  };
  const redactor = new Redactor();
  const endpoint = serverEndpoint(server, call.env, (token) => redactor.addSecret(token));
  const meanwhile = 'the agent continues';
  const trouble = new TroubleNotices(
    `${meanwhile}, and its events are kept`,
    tokenAdvice(tokenSource(server, call.env)),
  );
  const { hasManySessions, callers } = prepared;
  const about = { limits: limitsOf(kind.features), ...prepared.about };
  const { dataDir, env } = call;
  const controlFile = (agentId: string) => prepared.controlFile ?? controlPath(dataDir, agentId);
  const host = await RunnerHost.open({
    ...{ about, journal: about.kind, hasManySessions, meanwhile, controlFile, callers, dataDir, endpoint, redactor },
    level: logLevelOf(env),
    logsContextRatio: contextRatioOf(env),
    onStatus: (status) => trouble.status('', status),
    onLink: (link) => trouble.link('', link),
    print: printNotice,
    openOutbox: (listeners) =>
      claimOutbox({
        folder: join(dataDir, 'outboxes'),
        serverKey: serverKey(server, env),
        agentId: call.flag('agent') ?? (prepared.isExclusive ? prepared.agentId : undefined),
        baseId: prepared.agentId,
        matches: async (outbox) => (await prepared.matches?.(outbox)) ?? false,
        listeners,
      }),
  }).catch((error) => {
    if (!(error instanceof ProcessLockedError && prepared.isExclusive)) throw error;
    const agentId = call.flag('agent') ?? prepared.agentId;
    throw new CliError(EXIT.failed, `${agentId} is already running as process ${error.pid}; stop it first`);
  });
  const [recordTo, prompt] = [call.flag('record'), call.flag('prompt')];
  const options = { controlFile: controlFile(host.agentId), recordTo, prompt, env };
  return await runOpened(host, prepared, endpoint, options);
}

/** Runs the agent until it ends. Always closes the outbox. */
async function runOpened(
  host: RunnerHost,
  { open, endWithinMs }: PreparedRunner,
  endpoint: () => Promise<{ url: string }>,
  {
    controlFile,
    recordTo,
    prompt,
    env,
  }: { controlFile: string; recordTo: string | undefined; prompt: string | undefined; env: Environment },
): Promise<ExitCode> {
  const { ends, hurries, release } = stopSignals(true);
  let recorder: Recorder | null = null;
  try {
    if (recordTo !== undefined) recorder = Recorder.open(recordTo, host.logger.redactor);
    const record = recorder?.write;
    const { agentId, outbox, logger } = host;
    const note = workspaceNote(env.INTERLUDE_WORKSPACE);
    if (note.problem !== null) logger.child('workspace').warn(note.problem);
    const opened = { agentId, controlFile, outbox, logger, workspaceNote: note.text, ...(record ? { record } : {}) };
    const { source, sessionId, greeting } = await open(opened);
    await host.start(source, sessionId);
    // Not awaited, so that the address is printed while the agent is starting.
    if (prompt !== undefined && sessionId !== undefined) void host.sendFirstMessage({ sessionId, text: prompt });
    if (greeting !== undefined) printNotice(greeting);
    if (sessionId !== undefined) {
      // Waits until the printed address works, if the dashboard is reachable.
      await withDeadline(ARRIVAL_MS, ends, (until) => host.outbox.idle(until));
      const { url } = await endpoint();
      if (host.failure === null)
        process.stdout.write(`${await pagesUrl(url, env)}/sessions/${encodeURIComponent(sessionId)}\n`);
    }
    await aborted(AbortSignal.any([ends, host.stopSignal]));
    if (host.stopSignal.aborted && host.failure === null) printNotice(host.stopSignal.reason);
    else if (ends.aborted && endWithinMs > 0)
      printNotice('stopping when the agent has finished; press Ctrl-C again to stop now');
    hurries.addEventListener('abort', () => host.hurry());
    const endMs = host.stopSignal.aborted ? Math.min(ENDED_WITHIN_MS, endWithinMs) : endWithinMs;
    const { waiting } = await host.close(host.failure === null ? endMs : 0, FLUSH_MS);
    if (waiting > 0) printNotice(`${waiting} records stay in the outbox; the next run sends them`);
    if (host.failure !== null) throw new CliError(EXIT.failed, host.failure);
    return EXIT.done;
  } finally {
    release();
    recorder?.close();
    await host.outbox.stop();
    host.logger.close();
  }
}

function readCall(command: string, kind: RunnerKind, argv: string[], env: Environment): RunnerCall {
  const { flags = [], switches = [], acceptsCommand = false, urlNamesAgent = false, acceptsPrompt = false } = kind;
  const end = acceptsCommand ? argv.indexOf('--') : -1;
  const own = end < 0 ? argv : argv.slice(0, end);
  const addresses = urlNamesAgent ? DASHBOARD_FLAGS : SERVER_FLAGS;
  const parsed = readFlags(
    command,
    own,
    {
      ...{ ...COMMON, ...addresses, ...(acceptsPrompt ? { prompt: TEXT } : {}) },
      ...Object.fromEntries(flags.map((name) => [name, TEXT])),
      ...Object.fromEntries(switches.map((name) => [name, SWITCH])),
    },
    env,
  );
  const values = parsed.values as Record<string, string | boolean | undefined>;
  const flag = (name: string) => values[name] as string | undefined;
  const usage = (problem: string) => usageError(problem, command);
  if (parsed.positionals.length > 0) {
    throw usage(acceptsCommand ? 'put the command of the agent after --' : 'this command takes options only');
  }
  const prompt = flag('prompt');
  if (prompt?.trim() === '' || Buffer.byteLength(prompt ?? '') > MAX_MESSAGE_BYTES) {
    throw usage(`--prompt must be a text of 1 to ${MAX_MESSAGE_BYTES} bytes`);
  }
  return {
    flag,
    has: (name) => values[name] === true,
    seconds(name, otherwise, most) {
      const text = flag(name) ?? `${otherwise}`;
      const value = Number(text);
      if (text.trim() !== '' && value >= 0 && value <= most) return value * 1_000;
      throw usage(`--${name} must be a number of seconds, at most ${most}`);
    },
    usage,
    env,
    dataDir: openDataDir(env),
    command: end < 0 ? [] : argv.slice(end + 1),
  };
}
