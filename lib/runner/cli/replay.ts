import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import type { IngestResponse } from '@interlude/protocol/envelope';
import { NOTHING_OPEN } from '@interlude/protocol/lifecycle/open-session';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { RECORDED_KINDS } from '../adapters/recordings';
import { interludeCommand } from '../host/own-program.mjs';
import { ProcessLockedError } from '../host/process-lock';
import type { Endpoint } from '../host/server-request';
import { statusRecord } from '../host/status-report';
import { DeliveryJournal } from '../logger/delivery-journal';
import { EventJournal } from '../logger/event-journal';
import { createOutboxLogger } from '../logger/logger';
import { Redactor } from '../logger/redactor';
import type { OutboxNotice } from '../outbox/delivery';
import type { Trouble } from '../outbox/drain';
import { Outbox, type OutboxStatus } from '../outbox/outbox';
import { OutboxVersionError } from '../outbox/store';
import {
  CliError,
  type Command,
  EXIT,
  type ExitCode,
  logLevelOf,
  readFlags,
  SERVER_FLAGS,
  stopSignals,
  TEXT,
  TOKEN_HELP,
  usageError,
} from './command';
import { openDataDir, pagesUrl, serverEndpoint, serverKey, tokenAdvice, tokenSource } from './dashboard';
import { play, type Recording, readRecording } from './recording';

const HELP = `Usage: ${interludeCommand(['replay'])} <recording.jsonl> [options]

Plays a recording made by "runner <kind> --record FILE" to the dashboard, through adapter and outbox like a runner. Ends
when the server has acknowledged every record, and prints the address of the session.

  --session ID     write to this session; default: a new one, named after the file
  --agent ID       appear as this agent; default: replay-<file name>
  --kind KIND      treat the recording as ${Object.keys(RECORDED_KINDS).join(', ')}; default: detected
  --speed N        play N times as fast as recorded, or without waits with "max"; default 1
  --url URL        the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F   ${TOKEN_HELP}

To resume a stopped replay, run the same command again. A finished replay is repeated as a new session, but not with
--session, because that session already has it.

Exit codes: 0 all acknowledged, 1 failed (the next run sends the rest) or every record was quarantined, 2 usage.`;

/** Maximum wait for a server that is unreachable at the end of the recording. */
const UNREACHABLE_TIMEOUT_MS = 30_000;

type Environment = Record<string, string | undefined>;

export const command: Command = { help: HELP, run: replay };

async function replay(argv: string[], env: Environment): Promise<ExitCode> {
  const options = readOptions(argv, env);
  const home = openDataDir(env);
  const recording = await readRecording(options.file, options.kind).catch((error: Error) => {
    throw new CliError(EXIT.failed, error.message);
  });
  const agentId = options.agent ?? truncateText(`replay-${recording.name}`, MAX_ID_LENGTH);
  const giveUp = new AbortController();
  const { ends: signal, release } = stopSignals();
  const redactor = new Redactor();
  const endpoint = serverEndpoint(options, env, (token) => redactor.addSecret(token));
  const progress = new ReplayProgress(recording.lines.length, endpoint);
  const place = {
    recording,
    agentId,
    sessionId: options.session,
    serverKey: serverKey(options, env),
    outboxDir: join(home, 'outboxes'),
  };
  const rejected: IngestResponse['rejected'] = [];
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
        // Quarantined records are counted, and reported once at the end.
        if (notice.kind === 'quarantined') rejected.push(...notice.rejected);
        else {
          progress.notice(notice);
          journal?.notice(notice);
        }
      },
    });
  } catch (error) {
    if (error instanceof ProcessLockedError) {
      throw new CliError(
        EXIT.failed,
        `process ${error.pid} is already replaying to session ${options.session}; stop it first`,
      );
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
  journal = new DeliveryJournal({ logger, meanwhile: 'the recording continues' });
  const log = logger.child('replay');
  if (logger.level.warning !== null) log.warn(logger.level.warning);
  const acknowledgedBefore = outbox.status.lastSeq - outbox.status.waiting;
  const ends = AbortSignal.any([signal, giveUp.signal]);
  try {
    if (line >= recording.lines.length && outbox.status.waiting === 0) {
      progress.report(`session ${sessionId} already has this recording; name another --session to replay it again`);
      return EXIT.done;
    }
    outbox.kick();
    const begins = line === 0 ? 'playing' : `resuming at line ${line + 1} of`;
    if (line < recording.lines.length) log.info(`${begins} recording ${recording.name} as session ${sessionId}`);
    if (line === 0) await outbox.enqueue(arrival(recording.kind, agentId, sessionId), replayCursor(sessionId, 0));
    const events = new EventJournal(logger, 'recording');
    await play({
      recording,
      sessionId,
      fromLine: line,
      speed: options.speed,
      signal: ends,
      emit: (given, next) => {
        events.write(given);
        const records = given.map((one) => ({ kind: 'event' as const, agentId, ...one }));
        return outbox.enqueue(records, replayCursor(sessionId, next));
      },
      onSkipped: (given) => events.remember(given),
      onLine: (next) => progress.line(next),
    });
    log.info(ends.aborted ? 'stopped; run the same command to resume' : 'recording ended');
    if (!ends.aborted) await outbox.idle(AbortSignal.any([ends, progress.unreachableFor(UNREACHABLE_TIMEOUT_MS)]));
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
      progress.report('stopped; run the same command to resume');
      return EXIT.interrupted;
    }
    const { url } = await endpoint();
    const acknowledged = lastSeq - waiting - acknowledgedBefore;
    const quarantineReason = rejected[0]?.message ?? null;
    const quarantined = rejected.length;
    const counts = { trouble, waiting, acknowledged, logLines, quarantined, quarantineReason };
    const failure = replayFailure({ url, ...counts, tokenAdvice: tokenAdvice(tokenSource(options, env)) });
    if (waiting === 0 && trouble === null) await forget();
    if (failure !== null) throw new CliError(EXIT.failed, failure);
    if (quarantined > 0) {
      progress.report(`${quarantined} of ${acknowledged} records were quarantined; first reason: ${quarantineReason}`);
    }
    process.stdout.write(`${await pagesUrl(url, env)}/sessions/${encodeURIComponent(sessionId)}\n`);
    return EXIT.done;
  }
}

const REPLAYED = 'this is a replay of a recording; no agent receives commands';
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
    throw usageError(`--kind must be one of ${Object.keys(RECORDED_KINDS).join(', ')}`, 'replay');
  }
  const times = speed === 'max' ? Number.POSITIVE_INFINITY : Number(speed);
  if (!(times > 0)) throw usageError('--speed must be a number above 0, or max', 'replay');
  return { ...values, file, speed: times };
}

/** The outcome of a finished replay. */
export interface ReplayOutcome {
  url: string;
  trouble: Trouble | null;
  /** Unacknowledged records. */
  waiting: number;
  /** Records acknowledged in this run, including quarantined ones. */
  acknowledged: number;
  /** Acknowledged log lines. They belong to the agent and are stored whatever happens to the session. */
  logLines: number;
  quarantined: number;
  /** Reason of the first quarantined record. */
  quarantineReason: string | null;
  tokenAdvice: string;
}

/** @returns the error line; null if the session has events */
export function replayFailure(outcome: ReplayOutcome): string | null {
  const { url, trouble, waiting, acknowledged, logLines, quarantined, quarantineReason, tokenAdvice } = outcome;
  if (waiting > 0 || trouble !== null) {
    const kept = `${waiting} records stay in the outbox; run the same command to send them`;
    if (trouble === null) return `${url} did not acknowledge everything (${kept})`;
    if (trouble.kind === 'unavailable') return `${url} can't be reached: ${trouble.message} (${kept})`;
    const advice = trouble.kind === 'unauthorized' ? `; ${tokenAdvice}` : '';
    return `${url}: ${trouble.message} (${kept}${advice})`;
  }
  // The agent's first status record is stored whatever happens to its events.
  if (quarantined > 0 && quarantined >= acknowledged - logLines - 1) {
    return `${url} quarantined every record: ${quarantineReason}; name another --session or --agent`;
  }
  return null;
}

/** Progress on stderr: a line updated in place on terminals, and the start and end of each outage. */
export class ReplayProgress {
  readonly #lines: number;
  readonly #endpoint: Endpoint;
  readonly #isTerminal = process.stderr.isTTY === true;
  #line = 0;
  #status: OutboxStatus | null = null;
  #isUnreachable = false;
  #unreachable: { afterMs: number; controller: AbortController; timer: NodeJS.Timeout | null } | null = null;

  constructor(lines: number, endpoint: Endpoint) {
    this.#lines = lines;
    this.#endpoint = endpoint;
  }

  line(line: number): void {
    this.#line = line;
    this.#draw();
  }

  status(status: OutboxStatus): void {
    this.#status = status;
    this.#draw();
    this.#watch();
    const { trouble } = status;
    if (trouble?.kind === 'unavailable' && !this.#isUnreachable) {
      this.#isUnreachable = true;
      void this.#reportUnreachable(trouble.message);
    } else if (trouble === null && this.#isUnreachable) {
      this.#isUnreachable = false;
      this.report('reconnected to the dashboard');
    }
  }

  notice(notice: OutboxNotice): void {
    this.report(notice.message);
  }

  /** Aborts after an outage of this length. */
  unreachableFor(afterMs: number): AbortSignal {
    this.#unreachable = { afterMs, controller: new AbortController(), timer: null };
    this.#watch();
    return this.#unreachable.controller.signal;
  }

  report(message: string): void {
    if (this.#isTerminal) process.stderr.write('\r\x1b[K');
    process.stderr.write(`interlude: ${message}\n`);
  }

  /** Clears the progress line. */
  end(): void {
    if (this.#isTerminal && this.#status) process.stderr.write('\r\x1b[K');
    this.#status = null;
    if (this.#unreachable?.timer) clearTimeout(this.#unreachable.timer);
    this.#unreachable = null;
  }

  #watch(): void {
    const watch = this.#unreachable;
    if (!watch) return;
    const trouble = this.#status?.trouble;
    if (!trouble && watch.timer) {
      clearTimeout(watch.timer);
      watch.timer = null;
    } else if (trouble && !watch.timer) {
      watch.timer = setTimeout(() => watch.controller.abort(), watch.afterMs);
    }
  }

  async #reportUnreachable(reason: string): Promise<void> {
    const { url } = await this.#endpoint();
    this.report(`${url} can't be reached (${reason}); sending unsent records when it responds`);
  }

  #draw(): void {
    if (!this.#isTerminal || !this.#status) return;
    const waiting = this.#status.waiting > 0 ? `, ${this.#status.waiting} records to acknowledge` : '';
    process.stderr.write(`\r\x1b[Kline ${this.#line} of ${this.#lines}${waiting}`);
  }
}

interface ReplayPlace {
  recording: Recording;
  agentId: string;
  sessionId: string | undefined;
  serverKey: string;
  outboxDir: string;
}

interface ReplayOutbox {
  outbox: Outbox;
  sessionId: string;
  /** The next line to play. */
  line: number;
  /** Removes the file of a replay without --session. Call it after `outbox.stop()`, once everything is acknowledged. */
  forget: () => Promise<void>;
}

interface Listeners {
  endpoint: Endpoint;
  onStatus: (status: OutboxStatus) => void;
  onNotice: (notice: OutboxNotice) => void;
}

const CURSOR = 'replay';
/** Maximum number of simultaneous replays of one recording, each with its own session. */
const MAX_REPLAYS = 256;

function replayCursor(sessionId: string, line: number): { name: string; value: string } {
  return { name: CURSOR, value: JSON.stringify({ sessionId, line }) };
}

/**
 * Opens the outbox of one replay. Its file also stores the replay's progress, so that the two can't disagree.
 *
 * - With --session, the file belongs to (recording, session, agent, server) and is kept: the same command resumes, and
 *   does nothing once everything is acknowledged.
 * - Without --session, each replay is a new session. Only an unfinished replay is resumed; its file is deleted at the
 *   end.
 *
 * Failure: a server that lost acknowledged records (its database was deleted or replaced) gets the recording from the
 * beginning.
 *
 * @throws ProcessLockedError when the named session is being replayed by another process
 * @throws OutboxVersionError when another version of Interlude wrote the named session's file
 */
async function openReplayOutbox(place: ReplayPlace, listeners: Listeners): Promise<ReplayOutbox> {
  if (place.sessionId !== undefined) return openAt(fileOf(place), place, listeners);
  for (let index = 0; index < MAX_REPLAYS; index += 1) {
    try {
      return await openAt(fileOf(place, index), place, listeners);
    } catch (error) {
      if (!(error instanceof ProcessLockedError || error instanceof OutboxVersionError)) throw error;
    }
  }
  throw new Error(`${MAX_REPLAYS} replays of ${place.recording.name} are already running; stop one of them first`);
}

async function openAt(file: string, place: ReplayPlace, listeners: Listeners): Promise<ReplayOutbox> {
  const { agentId, recording } = place;
  const options = { agentId, sendAtOpen: false, ...listeners };
  let outbox = await Outbox.open(file, options);
  let stored = await outbox.cursor(CURSOR);
  if (stored !== null && (await outbox.isRemembered()) === false) {
    await outbox.stop();
    await removeOutbox(file);
    outbox = await Outbox.open(file, options);
    stored = null;
  }
  const { sessionId, line } = stored
    ? (JSON.parse(stored) as { sessionId: string; line: number })
    : {
        sessionId: place.sessionId ?? `${truncateText(recording.name, 200)}-${randomBytes(4).toString('hex')}`,
        line: 0,
      };
  const forget = () => (place.sessionId === undefined ? removeOutbox(file) : Promise.resolve());
  return { outbox, sessionId, line, forget };
}

function fileOf({ recording, agentId, sessionId, serverKey, outboxDir }: ReplayPlace, at = 0): string {
  const identity = JSON.stringify([recording.hash, agentId, sessionId ?? null, serverKey]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  // The name is for readers; the hash makes it unique.
  const name = (sessionId ?? recording.name).replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, 80);
  return join(outboxDir, `replay-${name}-${hash}${at > 0 ? `-${at}` : ''}.db`);
}

async function removeOutbox(file: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm', '.lock', '.lock-journal']) await rm(file + suffix, { force: true });
}
