import { join } from 'node:path';
import { MAX_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { claimOutbox } from '../host/claim-outbox';
import { isContextRatioEnabled } from '../host/context-ratio';
import { workspaceNote } from '../host/first-message';
import { RunnerHost } from '../host/runner-host';
import { Redactor } from '../logger/redactor';
import { ProcessLockedError } from '../process-lock';
import { Recorder } from '../replay/recorder';
import { interludeCommand } from '../shown-command.mjs';
import { KINDS } from '../sources/kinds';
import type { PreparedRunner, RunnerCall, RunnerKind } from '../sources/runner-kind';
import { limitsOf } from '../sources/runner-kind';
import { withDeadline } from '../with-deadline';
import type { Command } from './command';
import { endSignals } from './end-signals';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { DASHBOARD_FLAGS, readFlags, SERVER_FLAGS, TEXT, TOKEN_HELP } from './flags';
import { openDataDir, pagesUrl, serverEndpoint, serverKey } from './local-server';
import { logLevelOf } from './log-level';
import { say } from './say';
import { adviceOnToken, tokenSource } from './token-source';
import { TroubleLine } from './trouble-line';

const HELP = `Usage: ${interludeCommand(['runner'])} <kind> [options]

Runs an agent, or stands beside one, and connects it to the dashboard. The kinds:

${Object.entries(KINDS)
  .map(([name, { title }]) => `  ${name.padEnd(10)}${title}`)
  .join('\n')}

  --session ID   the session; what it is by default depends on the kind
  --agent ID     the agent to appear as
  --record FILE  write down what passes between the runner and the agent, without secrets, for "replay"; not of hooks
  --token-file F ${TOKEN_HELP}

What else a kind takes it says itself, as in: ${interludeCommand(['runner', 'codex', '--help'])}`;

/** `interlude runner <kind>`: one agent, or the agents of one machine, connected to the dashboard. */
function runnerHelp([name = '']: string[]): string {
  return (Object.hasOwn(KINDS, name) ? KINDS[name]?.help : undefined) ?? HELP;
}

type Environment = Record<string, string | undefined>;

const FLUSH_MS = 5_000;
/** How long an agent may go on whose session was ended from the dashboard: there people see that it works. */
const ENDED_WITHIN_MS = 5_000;
/** How long printing the address waits for the dashboard to know the session. */
const ARRIVAL_MS = 3_000;
const COMMON = { agent: TEXT, session: TEXT, record: TEXT };

export const command: Command = { help: runnerHelp, run: runner };

async function runner(argv: string[], env: Environment): Promise<ExitCode> {
  const [name, ...rest] = argv;
  const kind = name !== undefined && Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  if (kind !== undefined) return await run(readCall(`runner ${name}`, kind, rest, env), kind);
  const problem =
    name === undefined || name.startsWith('-') ? 'name the kind of agent' : `there is no runner for "${name}"`;
  const kinds = Object.keys(KINDS).join(', ');
  throw new CliError(EXIT.usage, `${problem} (${kinds}); see "${interludeCommand(['runner', '--help'])}"`);
}

async function run(call: RunnerCall, kind: RunnerKind): Promise<ExitCode> {
  const prepared = await kind.prepare(call);
  const server = {
    url: call.flag(kind.urlIsAgents ? 'dashboard' : 'url'),
    'token-file': call.flag('token-file'),
  };
  const redactor = new Redactor();
  const endpoint = serverEndpoint(server, call.env, (token) => redactor.learn(token));
  const trouble = new TroubleLine(
    `${prepared.meanwhile}, and what it does is kept`,
    adviceOnToken(tokenSource(server, call.env)),
  );
  const { journal, carriesMany, meanwhile, controlFile, callers } = prepared;
  const about = { limits: limitsOf(kind.features), ...prepared.about };
  const { dataDir, env } = call;
  const host = await RunnerHost.open({
    ...{ about, journal, carriesMany, meanwhile, controlFile, callers, dataDir, endpoint, redactor },
    level: logLevelOf(env),
    tellsContextRatio: isContextRatioEnabled(env),
    onStatus: (status) => trouble.status('', status),
    onLink: (link) => trouble.link('', link),
    say,
    openOutbox: (listeners) =>
      claimOutbox({
        folder: join(dataDir, 'outboxes'),
        serverKey: serverKey(server, env),
        agentId: call.flag('agent') ?? (prepared.isAlone ? prepared.agentId : undefined),
        baseId: prepared.agentId,
        carries: async (outbox) => (await prepared.carries?.(outbox)) ?? false,
        listeners,
      }),
  }).catch((error) => {
    if (!(error instanceof ProcessLockedError && prepared.isAlone)) throw error;
    const agentId = call.flag('agent') ?? prepared.agentId;
    throw new CliError(EXIT.failed, `${agentId} is already running, as process ${error.pid}; stop that one first`);
  });
  const [recordTo, prompt] = [call.flag('record'), call.flag('prompt')];
  return await runOpened(host, prepared, endpoint, { recordTo, prompt, workspace: env.INTERLUDE_WORKSPACE, env });
}

/** Runs it from start to end; whatever happens, the outbox is closed. */
async function runOpened(
  host: RunnerHost,
  { open, endWithinMs }: PreparedRunner,
  endpoint: () => Promise<{ url: string }>,
  {
    recordTo,
    prompt,
    workspace,
    env,
  }: Record<'recordTo' | 'prompt' | 'workspace', string | undefined> & { env: Environment },
): Promise<ExitCode> {
  const { ends, hurries, release } = endSignals(true);
  let recorder: Recorder | null = null;
  try {
    if (recordTo !== undefined) recorder = Recorder.open(recordTo, host.logger.redactor);
    const record = recorder?.write;
    const { agentId, outbox, logger } = host;
    const note = workspaceNote(workspace);
    if (note.problem !== null) logger.child('workspace').warn(note.problem);
    const opened = { agentId, outbox, logger, workspaceNote: note.text, ...(record ? { record } : {}) };
    const { source, sessionId, greeting } = await open(opened);
    await host.start(source, sessionId);
    // Nobody waits for it: an agent that comes up slowly still has its address printed.
    if (prompt !== undefined && sessionId !== undefined) void host.sayFirst({ sessionId, text: prompt });
    if (greeting !== undefined) say(greeting);
    if (sessionId !== undefined) {
      // Anybody who follows the address finds the session, if there is a dashboard to show it.
      await withDeadline(ARRIVAL_MS, ends, (until) => host.outbox.idle(until));
      const { url } = await endpoint();
      if (host.failure === null)
        process.stdout.write(`${await pagesUrl(url, env)}/sessions/${encodeURIComponent(sessionId)}\n`);
    }
    await fired(AbortSignal.any([ends, host.over]));
    if (host.over.aborted && host.failure === null) say(host.over.reason);
    else if (ends.aborted && endWithinMs > 0)
      say('ending once the agent has finished what it is doing; Ctrl-C again ends it now');
    hurries.addEventListener('abort', () => host.hurry());
    const asked = host.over.aborted ? Math.min(ENDED_WITHIN_MS, endWithinMs) : endWithinMs;
    const { waiting } = await host.close(host.failure === null ? asked : 0, FLUSH_MS);
    if (waiting > 0) say(`${waiting} records are kept in the outbox, and the next run sends them`);
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
  const { flags, takesCommand = false, urlIsAgents = false, takesPrompt = false } = kind;
  const end = takesCommand ? argv.indexOf('--') : -1;
  const own = end < 0 ? argv : argv.slice(0, end);
  const addresses = urlIsAgents ? DASHBOARD_FLAGS : SERVER_FLAGS;
  const parsed = readFlags(
    command,
    own,
    { ...COMMON, ...addresses, ...(takesPrompt ? { prompt: TEXT } : {}), ...flags },
    env,
  );
  const values = parsed.values as Record<string, string | boolean | undefined>;
  const flag = (name: string) => values[name] as string | undefined;
  const usage = (problem: string) => usageError(problem, command);
  if (parsed.positionals.length > 0) {
    throw usage(takesCommand ? 'the command of the agent stands behind --' : 'it takes options only');
  }
  const prompt = flag('prompt');
  if (prompt?.trim() === '' || Buffer.byteLength(prompt ?? '') > MAX_MESSAGE_BYTES) {
    throw usage(`--prompt is a text of at most ${MAX_MESSAGE_BYTES} bytes, and not empty`);
  }
  return {
    flag,
    has: (name) => values[name] === true,
    seconds(name, otherwise, most) {
      const text = flag(name) ?? `${otherwise}`;
      const value = Number(text);
      if (text.trim() !== '' && value >= 0 && value <= most) return value * 1_000;
      throw usage(`--${name} is a number of seconds, at most ${most}`);
    },
    usage,
    env,
    dataDir: openDataDir(env),
    command: end < 0 ? [] : argv.slice(end + 1),
  };
}
