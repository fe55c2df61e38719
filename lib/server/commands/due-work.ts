import { UNDELIVERED_MS } from '@interlude/protocol/limits';
import type { Database } from '@/db/client';
import type { Lease } from '@/db/lease';
import { type DueRows, hasDue, type RowChoice, RowSweep, type RowWork, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { pause } from '@/db/yield-to-loop';
import { ClockTrust, ClockWatch, newestReceivedAt } from '@/lib/server/access/clock-trust';
import type { ServerContext } from '@/lib/server/access/request-context';
import { removeUploads, unnamedUploads } from './attachments';
import { clampDeadlines } from './clamp-deadlines';
import { expiredLogLevels, expireLogLevels } from './desired-state';
import * as overdue from './overdue';
import { markAbsent, markSilent, missedRunners, openSessions, silentAgents } from './runner-absence';
import { disconnectExpired, silentRunners } from './runner-connection';
import { type ClockReading, expireCommands, expiredCommands } from './settle-command';

/**
 * Maximum milliseconds between two readings of the clock. After a longer pause the process was asleep or blocked, and
 * received no sign of life meanwhile.
 */
const ASLEEP_AFTER_MS = 3_000;

/** Maximum wait for another process that does the due work, and the poll interval. */
const MAX_WAIT_MS = 6_000;
const POLL_MS = 250;

/** Interval for reading the newest record's time, which scans every outbox that ever existed. */
const NEWEST_EVERY_MS = 10_000;

export type DueContext = Pick<
  ServerContext,
  'database' | 'now' | 'steady' | 'replyOverdueMs' | 'undeliveredMs' | 'kind' | 'streams'
>;

/**
 * Applies all changes that time alone causes: absent runners, expired commands, requests and log levels, overdue
 * replies.
 *
 * Ordering: the rows of each kind settle in the order of `all`.
 * Failure: due times are in the database, so a late sweep on any instance has the same outcome.
 */
export class DueWork {
  readonly lease: Lease;
  readonly #database: Database;
  readonly #now: () => number;
  readonly #rows: RowSweep;
  readonly #clock: ClockWatch;
  readonly #trust: ClockTrust;
  readonly #steady: () => number;
  readonly #replyOverdueMs: number;
  readonly #undeliveredMs: number;
  /** True if the process outlives its requests. */
  readonly #isLongLived: boolean;
  #newest: { at: number | null; readAt: number } = { at: null, readAt: Number.NEGATIVE_INFINITY };
  /** The last reading, and the start of uninterrupted readings, on the monotonic clock. */
  #read = { at: Number.NEGATIVE_INFINITY, since: 0 };
  /** Milliseconds by which the clock was stepped since deadlines were last clamped; null before the first clamping. */
  #step: number | null = null;
  #clamping: Promise<void> = Promise.resolve();

  constructor(context: DueContext) {
    const { database, now, steady, kind = 'shared' } = context;
    const { replyOverdueMs = overdue.REPLY_OVERDUE_MS, undeliveredMs = UNDELIVERED_MS } = context;
    this.lease = database.lease('sweep');
    this.#database = database;
    this.#now = now;
    this.#rows = new RowSweep(database.reader);
    this.#clock = new ClockWatch(now, steady);
    this.#trust = new ClockTrust(now, steady);
    this.#steady = steady ?? (() => performance.now());
    this.#replyOverdueMs = replyOverdueMs;
    this.#undeliveredMs = undeliveredMs;
    this.#isLongLived = kind === 'shared';
  }

  /** Does all due work now. */
  async sweep(): Promise<void> {
    await this.clamp();
    for (const work of this.all(await this.readClock())) await this.#rows.run(work);
  }

  /**
   * Like `sweep`, but only if anything is due, and joins a sweep of another process. Call before requests that show the
   * result.
   */
  async sweepDue(): Promise<void> {
    const due = this.all(await this.readClock()).map((work) => work.due);
    const since = this.#steady();
    while (await hasDue(this.#database.reader, due)) {
      if (await this.lease.acquire()) return this.sweepAndRelease();
      if (this.#steady() - since > MAX_WAIT_MS) return;
      await pause(POLL_MS);
      // If a sweep started after this call, it failed on the rows that are still due.
      const startedMs = await this.lease.sinceLastRunMs();
      if (startedMs !== null && startedMs <= this.#steady() - since) return;
    }
  }

  async sweepAndRelease(): Promise<void> {
    const since = this.#steady();
    // Ignored, because the lease expires.
    await this.sweep().finally(() => this.lease.release(this.#steady() - since).catch(() => {}));
  }

  /** Reads the time first, because a clock that is stepped during the check must not be trusted. */
  async readClock(): Promise<ClockReading> {
    const now = this.#now();
    // Short-lived processes trust their host's clock.
    if (!this.#isLongLived) return { now, isTrusted: true };
    const steady = this.#steady();
    if (steady - this.#read.at > ASLEEP_AFTER_MS) this.#read.since = steady;
    this.#read.at = steady;
    if (steady - this.#newest.readAt >= NEWEST_EVERY_MS) {
      this.#newest = { at: await newestReceivedAt(this.#database.reader), readAt: steady };
    }
    return { now, isTrusted: this.#trust.isTrusted(this.#newest.at) };
  }

  /** A failing database may have missed signs of life, so time before this call counts toward no runner's absence. */
  databaseFailed(): void {
    this.#read.since = this.#steady();
  }

  /** Clamps deadlines at the start and after the clock was stepped. Call before any work that uses the clock. */
  clamp(): Promise<void> {
    if (!this.#isLongLived) return Promise.resolve();
    this.#clamping = this.#clamping.catch(() => {}).then(() => this.#clampNow());
    return this.#clamping;
  }

  async #clampNow(): Promise<void> {
    const moved = this.#clock.step();
    if (moved === 0 && this.#step === 0) return;
    // Kept, so the next call retries, until the write succeeds.
    const step = (this.#step ?? 0) + moved;
    this.#step = step;
    await this.#database.writes.run((transaction) => clampDeadlines(transaction, this.#now(), step));
    this.#step = 0;
  }

  all(clock: ClockReading): RowWork[] {
    const { now, isTrusted } = clock;
    // While a short-lived process sleeps, other instances accept signs of life.
    const listeningSince = this.#isLongLived ? Math.ceil(now - (this.#read.at - this.#read.since)) : 0;
    const replies = { now, overdueMs: this.#replyOverdueMs };
    const results = { now, waitsMs: this.#undeliveredMs };
    const work = (
      kind: string,
      due: DueRows,
      run: (transaction: WriteTransaction, now: number, choice: RowChoice) => Promise<number>,
    ): RowWork => ({
      kind,
      due,
      work: (choice) => this.#database.writes.run((transaction) => run(transaction, now, choice)),
    });
    return [
      work('the log level of', expiredLogLevels(now), expireLogLevels),
      work('the command', expiredCommands(clock), (tx, _now, choice) => expireCommands(tx, clock, choice)),
      // Neither kind can be undone, so both need a trusted clock.
      ...(isTrusted
        ? [
            work('the expired requests of the session', overdue.expiredRequests(now), overdue.expireRequests),
            work('the attachment', unnamedUploads(now), removeUploads),
          ]
        : []),
      work('the silent runner of', silentRunners(now), (tx, _now, choice) =>
        disconnectExpired(tx, now, choice, listeningSince),
      ),
      this.#agentWork('the missing runner of', missedRunners(now), markAbsent, now),
      this.#agentWork('the silent agent', silentAgents(now), markSilent, now),
      work('the abandoned requests of the session', overdue.abandonedSessions(now), overdue.abandonRequests),
      work('the state of the session', overdue.dueStates(now), overdue.resolveDueStates),
      work('the activity of', overdue.oldActivity(now), overdue.removeActivity),
      work('the overdue reply', overdue.overdueReplies(replies), (tx, _now, choice) =>
        overdue.markOverdueReplies(tx, replies, choice),
      ),
      work('the result of the task', overdue.undeliveredResults(results), (tx, _now, choice) =>
        overdue.markUndelivered(tx, results, choice),
      ),
    ];
  }

  /** Marks agents concurrently; an agent that fails is retried session by session. */
  #agentWork(kind: string, due: DueRows, mark: typeof markAbsent, now: number): RowWork {
    const { reader, writes } = this.#database;
    const markAgents = async (choice: RowChoice) => {
      // Leaves half of the write slots to requests. On a remote database, agents don't wait for each other's round
      // trips.
      const atOnce = Math.ceil(writes.concurrency / 2);
      const { rows: agents } = await reader.execute(selectDue(due, choice, due.key, atOnce));
      const outcomes = await Promise.allSettled(
        agents.map((row) => {
          const id = String(row[due.key]);
          return writes.run((transaction) => mark(transaction, now, { only: id, except: [] }), {
            keys: [`agent:${id}`],
          });
        }),
      );
      let count = 0;
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') throw outcome.reason;
        count += outcome.value;
      }
      return count;
    };
    const markSessions = async (agent: RowChoice) => {
      const agentId = agent.only ?? '';
      await this.#rows.run({
        kind: `of the missing agent ${JSON.stringify(agentId)} the session`,
        due: openSessions(agentId),
        work: (sessions) => writes.run((transaction) => mark(transaction, now, agent, sessions)),
      });
      return 0;
    };
    return { kind, due, work: (choice) => (choice.only === null ? markAgents(choice) : markSessions(choice)) };
  }
}
