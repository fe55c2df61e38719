import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cutText } from '@/lib/protocol/cut-text';
import { controlPath, readControlFile } from '@/lib/runner/control-port/control-file';
import { troubleInWords } from '@/lib/runner/logger/delivery-journal';
import { fileNameOf } from '@/lib/runner/logger/log-name';
import { createLogger } from '@/lib/runner/logger/logger';
import { Redactor } from '@/lib/runner/logger/redactor';
import type { OutboxNotice } from '@/lib/runner/outbox/delivery';
import { OutboxLockedError } from '@/lib/runner/outbox/lock';
import { Outbox, type OutboxStatus } from '@/lib/runner/outbox/outbox';
import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import { Companion } from '@/lib/runner/sources/hooks/companion';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { requireIds } from './id-option';
import { interruptSignal } from './interrupt';
import { openDataDir, serverEndpoint, serverKey } from './local-server';
import { logLevelOf } from './log-level';

export const RUNNER_HOOKS_HELP = `Usage: ${interludeCommand(['runner', 'hooks'])} [options]

Stands beside the Claude Code sessions in the terminals of this machine and mirrors them to the dashboard. Their hooks
find it; this puts those in place, once: ${interludeCommand(['hooks', 'install'])}
Without this process the hooks do nothing.

  --session ID   follow only this session of Claude Code; default: all of them
  --agent ID     the agent to appear as; default: made of the machine's name
  --url URL      the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token T      its token; default: INTERLUDE_TOKEN, else the one of this machine

A message from the dashboard is put before the agent when its running turn ends; an idle terminal takes none. Permissions,
questions and interrupts stay in the terminal.

Exit codes: 0 ended, 1 failed, 2 usage.`;

type Environment = Record<string, string | undefined>;

/** The name in the control file's path that the installed hooks look for. */
export const HOOKS_CONTROL = 'hooks';
const FLUSH_MS = 5_000;

export async function runnerHooks(argv: string[], env: Environment): Promise<ExitCode> {
  const options = readOptions(argv, env);
  const home = openDataDir(env);
  const redactor = new Redactor();
  const endpoint = serverEndpoint(options, env, (token) => redactor.learn(token));
  const agentId = options.agent ?? `terminals@${hostname().split('.')[0]}`;
  const controlFile = controlPath(home, env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL);
  let companion: Companion | null = null;
  // An outbox that is found damaged says so before there is a log to write it to.
  const early: OutboxNotice[] = [];
  let troubled = false;
  const onStatus = (status: OutboxStatus) => {
    companion?.outboxChanged(status);
    const { trouble, state } = status;
    if (state === 'stopped' || (trouble !== null) === troubled) return;
    troubled = trouble !== null;
    say(trouble === null ? 'the dashboard is back' : `${troubleInWords(trouble)}; what the agents do is kept`);
  };
  const key = createHash('sha256')
    .update(JSON.stringify([agentId, serverKey(options, env)]))
    .digest('hex');
  const outbox = await Outbox.open(join(home, 'outboxes', `hooks-${fileNameOf(agentId)}-${key.slice(0, 8)}.db`), {
    producerId: `${cutText(agentId, 200)}/${randomBytes(6).toString('hex')}`,
    agentId,
    endpoint,
    sendAtOpen: false,
    onStatus,
    onNotice: (notice) => (companion === null ? early.push(notice) : companion.outboxNotice(notice)),
  }).catch((error) => {
    if (!(error instanceof OutboxLockedError)) throw error;
    throw new CliError(EXIT.failed, `${agentId} is at work already, as process ${error.pid}; stop that one first`);
  });
  const logger = createLogger({
    agentId,
    dir: join(home, 'logs'),
    level: logLevelOf(env),
    redactor,
    onRecord: (entry) => companion?.logged(entry),
  });
  const { signal, release } = interruptSignal();
  try {
    const other = await readControlFile(controlFile);
    if (other !== null && other.pid !== process.pid && (await answers(other.url))) {
      throw new CliError(
        EXIT.failed,
        `another companion runs on this machine, as process ${other.pid}; stop that one first`,
      );
    }
    let overFor: string | null = null;
    const over = new AbortController();
    companion = new Companion({
      agentId,
      sessionId: options.session,
      runnerId: randomUUID(),
      startedAt: Date.now(),
      outbox,
      endpoint,
      logger,
      controlFile,
      onOver: (reason) => {
        overFor = reason;
        over.abort();
      },
    });
    await companion.start();
    for (const notice of early) companion.outboxNotice(notice);
    say(`${agentId} follows the terminals of this machine; Ctrl-C ends it`);
    await fired(AbortSignal.any([signal, over.signal]));
    const { waiting } = await companion.close(FLUSH_MS);
    if (waiting > 0) say(`${waiting} records are kept in the outbox, and the next run sends them`);
    if (overFor !== null) throw new CliError(EXIT.failed, overFor);
    return EXIT.done;
  } finally {
    release();
    await outbox.stop();
    logger.close();
  }
}

/** Whether anything listens there: a file that a killed companion left behind names a port that is closed. */
async function answers(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(500) }).then(
    () => true,
    () => false,
  );
}

function say(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

function readOptions(argv: string[], env: Environment) {
  const text = { type: 'string' } as const;
  const { session, agent, url, token } = parse();
  requireIds({ session, agent }, 'runner hooks');
  const address = url ?? env.INTERLUDE_URL;
  if (address !== undefined && !/^https?:$/.test(URL.canParse(address) ? new URL(address).protocol : '')) {
    throw usageError(`${address} is not an http address`, 'runner hooks');
  }
  return { session, agent, url, token };

  function parse() {
    try {
      return parseArgs({ args: argv, options: { session: text, agent: text, url: text, token: text } }).values;
    } catch (error) {
      throw usageError((error as Error).message.split('. ')[0] ?? '', 'runner hooks');
    }
  }
}
