import { join } from 'node:path';
import { claimOutbox } from '@/lib/runner/host/claim-outbox';
import { RunnerHost } from '@/lib/runner/host/runner-host';
import { Redactor } from '@/lib/runner/logger/redactor';
import { ProcessLockedError } from '@/lib/runner/process-lock';
import { Recorder } from '@/lib/runner/replay/recorder';
import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import { limitsOf } from '@/lib/runner/sources/features';
import { KINDS } from '@/lib/runner/sources/kinds';
import type { PreparedRunner, RunnerCall, RunnerKind } from '@/lib/runner/sources/runner-kind';
import { withDeadline } from '@/lib/runner/with-deadline';
import { endSignals } from './end-signals';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { readFlags, SERVER_FLAGS, TEXT } from './flags';
import { openDataDir, serverEndpoint, serverKey } from './local-server';
import { logLevelOf } from './log-level';
import { say } from './say';
import { TroubleLine } from './trouble-line';

/** `interlude runner <kind>`: one agent, or the agents of one machine, connected to the dashboard. */
export const RUNNER_HELP = Object.values(KINDS)
  .map(({ help }) => help)
  .join('\n\n');

type Environment = Record<string, string | undefined>;

const FLUSH_MS = 5_000;
/** How long printing the address waits for the dashboard to know the session. */
const ARRIVAL_MS = 3_000;
const COMMON = { agent: TEXT, session: TEXT, record: TEXT, ...SERVER_FLAGS };

export async function runner(argv: string[], env: Environment): Promise<ExitCode> {
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
  const server = { url: call.flag('url'), token: call.flag('token') };
  const redactor = new Redactor();
  const endpoint = serverEndpoint(server, call.env, (token) => redactor.learn(token));
  const trouble = new TroubleLine(`${prepared.meanwhile}, and what it does is kept`);
  const { journal, meanwhile, controlFile } = prepared;
  const about = { limits: limitsOf(kind.features), ...prepared.about };
  const { dataDir, env } = call;
  const host = await RunnerHost.open({
    ...{ about, journal, meanwhile, controlFile, dataDir, endpoint, redactor },
    level: logLevelOf(env),
    onStatus: (status) => trouble.status('', status),
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
  return await runOpened(host, prepared, endpoint, call.flag('record'));
}

/** Runs it from start to end; whatever happens, the outbox is closed. */
async function runOpened(
  host: RunnerHost,
  { open, endWithinMs }: PreparedRunner,
  endpoint: () => Promise<{ url: string }>,
  recordTo: string | undefined,
): Promise<ExitCode> {
  const { ends, hurries, release } = endSignals(true);
  let recorder: Recorder | null = null;
  try {
    if (recordTo !== undefined) recorder = Recorder.open(recordTo, host.logger.redactor);
    const record = recorder?.write;
    const { agentId, outbox, logger } = host;
    const { source, sessionId, greeting } = await open({ agentId, outbox, logger, ...(record ? { record } : {}) });
    await host.start(source);
    if (greeting !== undefined) say(greeting);
    if (sessionId !== undefined) {
      // Anybody who follows the address finds the session, if there is a dashboard to show it.
      await withDeadline(ARRIVAL_MS, ends, (until) => host.outbox.idle(until));
      const { url } = await endpoint();
      process.stdout.write(`${url.replace(/\/+$/, '')}/sessions/${encodeURIComponent(sessionId)}\n`);
    }
    await fired(AbortSignal.any([ends, host.over]));
    if (ends.aborted && endWithinMs > 0)
      say('ending once the agent has finished what it is doing; Ctrl-C again ends it now');
    hurries.addEventListener('abort', () => host.hurry());
    const { waiting } = await host.close(host.over.aborted ? 0 : endWithinMs, FLUSH_MS);
    if (waiting > 0) say(`${waiting} records are kept in the outbox, and the next run sends them`);
    if (host.over.aborted) throw new CliError(EXIT.failed, host.over.reason);
    return EXIT.done;
  } finally {
    release();
    recorder?.close();
    await host.outbox.stop();
    host.logger.close();
  }
}

function readCall(command: string, kind: RunnerKind, argv: string[], env: Environment): RunnerCall {
  const { flags, takesCommand = false } = kind;
  const end = takesCommand ? argv.indexOf('--') : -1;
  const own = end < 0 ? argv : argv.slice(0, end);
  const parsed = readFlags(command, own, { ...COMMON, ...flags }, env);
  const values = parsed.values as Record<string, string | boolean | undefined>;
  const flag = (name: string) => values[name] as string | undefined;
  const usage = (problem: string) => usageError(problem, command);
  if (parsed.positionals.length > 0) {
    throw usage(takesCommand ? 'the command of the agent stands behind --' : 'it takes options only');
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
