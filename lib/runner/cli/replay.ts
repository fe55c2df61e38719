import { join } from 'node:path';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { cutText } from '@interlude/protocol/cut-text';
import type { IngestAnswer } from '@interlude/protocol/envelope';
import { NOTHING_OPEN } from '@interlude/protocol/lifecycle/open-session';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { RECORDED_KINDS } from '../adapters/recorded-kinds';
import { statusRecord } from '../host/status-report';
import { DeliveryJournal } from '../logger/delivery-journal';
import { EventJournal } from '../logger/event-journal';
import { createOutboxLogger } from '../logger/outbox-logger';
import { Redactor } from '../logger/redactor';
import type { Outbox } from '../outbox/outbox';
import { ProcessLockedError } from '../process-lock';
import { play } from '../replay/player';
import { readRecording } from '../replay/recording';
import { openReplayOutbox, type ReplayOutbox, replayCursor } from '../replay/replay-outbox';
import { interludeCommand } from '../shown-command.mjs';
import type { Command } from './command';
import { endSignals } from './end-signals';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { readFlags, SERVER_FLAGS, TEXT, TOKEN_HELP } from './flags';
import { openDataDir, pagesUrl, serverEndpoint, serverKey } from './local-server';
import { logLevelOf } from './log-level';
import { replayFailure } from './replay-end';
import { ReplayProgress } from './replay-progress';
import { adviceOnToken, tokenSource } from './token-source';

const HELP = `Usage: ${interludeCommand(['replay'])} <recording.jsonl> [options]

Feeds a recording of an agent's run through its adapter and the outbox to the dashboard, as a runner would. Recordings
are made by "runner <kind> --record FILE". Ends when the server has acknowledged everything, and prints the address of
the session.

  --session ID   the session to write to; default: a new one, named after the file
  --agent ID     the agent to appear as; default: replay-<file name>
  --kind KIND    which kind of agent was recorded (${Object.keys(RECORDED_KINDS).join(', ')}); default: told from the file
  --speed N      1 is as recorded, 10 ten times as fast, max without any wait; default 1
  --url URL      the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F ${TOKEN_HELP}

A replay that was stopped goes on where it was when the same command is given again. One that was finished is
repeated as a new session; with --session it is not repeated, since the session has it already.

Exit codes: 0 everything is acknowledged, 1 failed (what was not sent is kept and sent by the next run) or every
record is in quarantine, 2 usage.`;

/** How long to wait for an unreachable server once everything is handed over. */
const PATIENCE_MS = 30_000;

type Environment = Record<string, string | undefined>;

export const command: Command = { help: HELP, run: replay };

async function replay(argv: string[], env: Environment): Promise<ExitCode> {
  const options = readOptions(argv, env);
  const home = openDataDir(env);
  const recording = await readRecording(options.file, options.kind).catch((error: Error) => {
    throw new CliError(EXIT.failed, error.message);
  });
  const agentId = options.agent ?? cutText(`replay-${recording.name}`, MAX_ID_LENGTH);
  const giveUp = new AbortController();
  const { ends: signal, release } = endSignals();
  const redactor = new Redactor();
  const endpoint = serverEndpoint(options, env, (token) => redactor.learn(token));
  const progress = new ReplayProgress(recording.lines.length, endpoint);
  const place = {
    recording,
    agentId,
    sessionId: options.session,
    serverKey: serverKey(options, env),
    outboxDir: join(home, 'outboxes'),
  };
  const rejected: IngestAnswer['rejected'] = [];
  let opened: ReplayOutbox;
  let journal: DeliveryJournal | null = null;
  try {
    opened = await openReplayOutbox(place, {
      endpoint,
      onStatus: (status) => {
        progress.status(status);
        journal?.outboxChanged(status);
        const trouble = status.trouble?.kind;
        if (trouble === 'unauthorized' || trouble === 'fenced') giveUp.abort();
      },
      onNotice: (notice) => {
        // told once, at the end, with their number
        if (notice.kind === 'quarantined') rejected.push(...notice.rejected);
        else {
          progress.notice(notice);
          journal?.notice(notice);
        }
      },
    });
  } catch (error) {
    if (error instanceof ProcessLockedError) {
      throw new CliError(EXIT.failed, `session ${options.session} is being replayed by process ${error.pid} already`);
    }
    throw error;
  }
  const { outbox, sessionId, line, forget } = opened;
  const dir = join(home, 'logs');
  let logLines = 0;
  const counting: Pick<Outbox, 'enqueue'> = {
    enqueue: (records) => {
      logLines += 1;
      return outbox.enqueue(records);
    },
  };
  const logger = createOutboxLogger({ agentId, dir, level: logLevelOf(env), redactor }, counting);
  journal = new DeliveryJournal({ logger, meanwhile: 'the recording goes on' });
  const log = logger.child('replay');
  if (logger.level.misread !== null) log.warn(logger.level.misread);
  const acknowledgedBefore = outbox.status.lastSeq - outbox.status.waiting;
  const ends = AbortSignal.any([signal, giveUp.signal]);
  try {
    if (line >= recording.lines.length && outbox.status.waiting === 0) {
      progress.say(`session ${sessionId} has this recording already; name another --session to replay it again`);
      return EXIT.done;
    }
    outbox.kick();
    const begins = line === 0 ? 'plays' : `goes on at line ${line + 1} of`;
    if (line < recording.lines.length) log.info(`${begins} the recording ${recording.name} as session ${sessionId}`);
    if (line === 0) await outbox.enqueue(arrival(recording.kind, agentId, sessionId), replayCursor(sessionId, 0));
    const events = new EventJournal(logger, 'recording');
    await play({
      recording,
      sessionId,
      fromLine: line,
      speed: options.speed,
      signal: ends,
      emit: (given, next) => {
        events.tell(given);
        const records = given.map((one) => ({ kind: 'event' as const, agentId, ...one }));
        return outbox.enqueue(records, replayCursor(sessionId, next));
      },
      onSkipped: (given) => events.learn(given),
      onLine: (next) => progress.line(next),
    });
    log.info(ends.aborted ? 'stopped; the same command goes on from here' : 'the recording has ended');
    if (!ends.aborted) await outbox.idle(AbortSignal.any([ends, progress.unreachableFor(PATIENCE_MS)]));
    return await finish();
  } finally {
    progress.end();
    release();
    await outbox.stop();
    logger.close();
  }

  async function finish(): Promise<ExitCode> {
    const { trouble, lastSeq } = outbox.status;
    const { waiting } = await outbox.stop({ flushMs: signal.aborted ? 1_000 : 0 });
    progress.end();
    if (signal.aborted) {
      progress.say('stopped; the same command goes on from here');
      return EXIT.interrupted;
    }
    const { url } = await endpoint();
    const acknowledged = lastSeq - waiting - acknowledgedBefore;
    const quarantineReason = rejected[0]?.message ?? null;
    const quarantined = rejected.length;
    const told = { trouble, waiting, acknowledged, logLines, quarantined, quarantineReason };
    const failure = replayFailure({ url, ...told, adviceOnToken: adviceOnToken(tokenSource(options, env)) });
    if (waiting === 0 && trouble === null) await forget();
    if (failure !== null) throw new CliError(EXIT.failed, failure);
    if (quarantined > 0) {
      progress.say(
        `${quarantined} of ${acknowledged} records were put into quarantine, the first: ${quarantineReason}`,
      );
    }
    process.stdout.write(`${await pagesUrl(url, env)}/sessions/${encodeURIComponent(sessionId)}\n`);
    return EXIT.done;
  }
}

const REPLAYED = 'this is a replay of a recording, and nobody listens';
/** No runner is behind it, neither while it plays nor afterwards. */
const REFUSALS = {
  message: REPLAYED,
  interrupt: REPLAYED,
  'session.end': REPLAYED,
  'task.stop': REPLAYED,
  'task.wake': REPLAYED,
  'wake-rule.set': REPLAYED,
  'permission.decision': REPLAYED,
  'question.answer': REPLAYED,
};

function arrival(kind: string, agentId: string, sessionId: string) {
  const about: AgentStatus = { kind, source: 'recording', takes: [], takesNot: REFUSALS };
  return statusRecord(agentId, about, Date.now(), { facts: { sessionId, attachments: [] }, open: NOTHING_OPEN });
}

function readOptions(argv: string[], env: Environment) {
  const flags = { session: TEXT, agent: TEXT, kind: TEXT, speed: TEXT, ...SERVER_FLAGS };
  const { values, positionals } = readFlags('replay', argv, flags, env);
  const { speed = '1' } = values;
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw usageError('name one recording', 'replay');
  if (values.kind !== undefined && !Object.hasOwn(RECORDED_KINDS, values.kind)) {
    throw usageError(`--kind is one of ${Object.keys(RECORDED_KINDS).join(', ')}`, 'replay');
  }
  const times = speed === 'max' ? Number.POSITIVE_INFINITY : Number(speed);
  if (!(times > 0)) throw usageError('--speed is a number above 0, or max', 'replay');
  return { ...values, file, speed: times };
}
