import { AppError, inShort } from '@interlude/protocol/errors';
import { HEARTBEAT_MS, RUNNER_AWAY_MS, UNDELIVERED_MS } from '@interlude/protocol/limits';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { databaseErrorCode } from '@/db/database-error';
import type { Lease } from '@/db/lease';
import { hasDue, isAnyDue, RowSweep, type RowWork } from '@/db/row-sweep';
import type { JobOptions } from '@/db/writes';
import { pause } from '@/db/yield-to-loop';
import { ClockTrust, newestReceived } from '@/lib/server/access/clock-trust';
import { ClockWatch } from '@/lib/server/access/clock-watch';
import type { OpenStreams } from '@/lib/server/access/open-streams';
import type { ServerContext } from '@/lib/server/access/server-context';
import type { Opener } from '@/lib/server/access/stream-answer';
import { claimCommands } from './claim-commands';
import { CommandStream } from './command-stream';
import { cutTerms } from './cut-terms';
import { renewLevel } from './desire-level';
import { dueWork } from './due-work';
import type { Hour } from './expire-commands';
import { REPLY_OVERDUE_MS } from './reply-settings';
import { connectRunner, disconnectMute, disconnectRunner, type RunnerRef, renewRunners } from './runner-connection';
import { renewRules } from './wake-rule';

/** How often to look for what another process queued, for leases that ran out, and for what has expired. */
const POLL_MS = 1000;
/** How often to renew the term of the runners that listen here: three times per term. */
const RENEW_MS = RUNNER_AWAY_MS / 3;
/** A process that has not looked for longer was asleep or held up: meanwhile it heard no runner. */
const DEAF_AFTER_MS = 3 * POLL_MS;

/** How long to wait for another process that does what is due, and how often to look whether it has. */
const MOST_WAIT_MS = 6_000;
const LOOK_AGAIN_MS = 250;

/** How often to look up when the newest record came. */
const NEWEST_EVERY_MS = 10_000;

/** What the handlers of this folder get. */
export interface CommandServer extends ServerContext {
  commands: CommandHub;
}

/**
 * The process's streams of commands, one per agent.
 *
 * Ordering: a command wakes its agent's stream when it is on disk, in this process at once and in others by their poll.
 * Failure: nothing is remembered here that the database does not hold; a process that dies loses only wakes.
 */
export class CommandHub {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #rows: RowSweep;
  readonly #lease: Lease;
  readonly #clock: ClockWatch;
  readonly #steady: () => number;
  readonly #replyOverdueMs: number;
  readonly #undeliveredMs: number;
  /** Whether this process lives on between two requests. */
  readonly #lasts: boolean;
  readonly #openStreams: OpenStreams | undefined;
  readonly #trust: ClockTrust;
  /** When the newest record came, as last looked up: the search goes through all outboxes there ever were. */
  #newest: { at: number | null; readAt: number } = { at: null, readAt: Number.NEGATIVE_INFINITY };
  /** When it looked last, and since when it has looked without a break, on the steady clock. */
  #looked = { at: Number.NEGATIVE_INFINITY, since: 0 };
  /** How far the clock has moved since terms were last cut to it; null before the first time. */
  #step: number | null = null;
  #cutting: Promise<void> = Promise.resolve();
  readonly #streams = new Map<string, CommandStream>();
  /** How to say of a stream that it has ended. */
  readonly #endings = new Map<CommandStream, () => void>();
  #poll: ReturnType<typeof setInterval> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #renewal: ReturnType<typeof setInterval> | undefined;
  #isPolling = false;
  #isHearing = false;
  #hasMoved = false;
  #unfollow: (() => void) | null = null;
  /** What failed last time: logged once, until it succeeds. */
  readonly #failing = new Set<Work>();
  #isClosed = false;

  constructor(
    context: Pick<
      ServerContext,
      'database' | 'now' | 'steady' | 'replyOverdueMs' | 'undeliveredMs' | 'kind' | 'streams'
    >,
  ) {
    const { database, now, steady, kind = 'shared', streams } = context;
    const { replyOverdueMs = REPLY_OVERDUE_MS, undeliveredMs = UNDELIVERED_MS } = context;
    this.#lasts = kind === 'shared';
    this.#openStreams = streams;
    this.#replyOverdueMs = replyOverdueMs;
    this.#undeliveredMs = undeliveredMs;
    this.#database = database;
    this.#lease = database.lease('sweep');
    this.#rows = new RowSweep(database.reader);
    this.#now = now;
    this.#clock = new ClockWatch(now, steady);
    this.#steady = steady ?? (() => performance.now());
    this.#trust = new ClockTrust(now, steady);
  }

  /** Watches for expired commands and silent runners, even while no runner is connected here. */
  keep(): void {
    if (this.#poll !== undefined || this.#isClosed) return;
    this.#poll = setInterval(() => void this.#look(), POLL_MS);
    this.#heartbeat = setInterval(() => {
      for (const stream of this.#streams.values()) stream.beat();
    }, HEARTBEAT_MS);
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS);
    for (const timer of [this.#poll, this.#heartbeat, this.#renewal]) if (typeof timer === 'object') timer.unref?.();
    void this.#look();
  }

  /** There is a new command for the agent. */
  wake(agentId: string): void {
    this.#streams.get(agentId)?.wake();
  }

  /**
   * Opens an agent's stream and ends its previous one.
   *
   * @param after the last command the runner has; 0 for none
   * @param signal aborted when the runner is gone
   * @param maxMs when to say `bye` and end; null for never
   * @param by what the runner may know, and how it is heard of that it may not listen any more
   * @throws AppError `unavailable` while shutting down, and what the database throws
   */
  async open(
    agentId: string,
    runner: RunnerRef,
    after: number,
    signal: AbortSignal,
    maxMs: number | null,
    by: { whenOver: (onEnd: () => void) => () => void; scope: Scope },
  ): Promise<Opener> {
    const { whenOver, scope } = by;
    if (this.#isClosed) {
      throw new AppError('unavailable', 'Interlude is shutting down. Open the stream again in a moment.', {
        headers: { 'retry-after': '1' },
      });
    }
    // where processes may freeze, what is due is done while a stream is open, and nothing after a refusal
    if (this.#lasts) this.keep();
    // to a runner with a scope, the counter would tell how busy others are
    const newest = scope.kind === 'everything' ? 'SELECT position FROM counter' : { sql: OWN_NEWEST, args: [agentId] };
    const { rows } = await this.#database.reader.execute(newest);
    const isBeyond = after > Number(rows[0]?.position ?? 0);
    const stream = new CommandStream({
      agentId,
      runner,
      tellsCounter: scope.kind === 'everything',
      // A position of another database says nothing about what the runner has: its memory of ids does.
      after: isBeyond ? 0 : after,
      claim: (self, from) => this.#claim(self, from),
      onEnd: (self, isGone) => this.#ended(self, isGone),
    });
    let isMore = false;
    const about = aboutAgent(agentId);
    const outcome = await this.#database.writes.run(async (transaction) => {
      const connection = await connectRunner(transaction, agentId, runner, stream.id, this.#now());
      if (connection.kind === 'connected') {
        await renewLevel(transaction, agentId, runner.id, this.#now());
        isMore = await renewRules(transaction, agentId, this.#now());
      }
      return connection;
    }, about);
    while (isMore) isMore = await this.#database.writes.run((again) => renewRules(again, agentId, this.#now()), about);
    if (outcome.kind === 'fenced') {
      stream.fence(outcome.by);
      return stream.open;
    }
    const before = this.#streams.get(agentId);
    this.#streams.set(agentId, stream);
    const timer = maxMs === null ? undefined : setTimeout(() => stream.close('planned'), maxMs);
    if (typeof timer === 'object') timer.unref?.();
    const ended = this.#openStreams?.begin();
    this.#endings.set(stream, () => {
      clearTimeout(timer);
      ended?.();
    });
    this.#followIfHeard();
    if (before !== undefined && before.runner.id !== runner.id) before.fence(runner);
    else before?.close('replaced');
    signal.addEventListener('abort', () => stream.abandon(), { once: true });
    stream.whenOver(whenOver);
    stream.greet(isBeyond ? 'gap' : 'ok');
    // it may have been closed while the runner was connected
    if (this.#isClosed) stream.close('shutdown');
    if (signal.aborted) stream.abandon();
    stream.wake();
    return stream.open;
  }

  /** Says `bye` to every runner, so that a server can stop without cutting one off. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#poll);
    clearInterval(this.#heartbeat);
    clearInterval(this.#renewal);
    for (const stream of [...this.#streams.values()]) stream.close('shutdown');
  }

  /** Does all that is due, now: tells who has gone, and ends commands, requests and log levels whose time is over. */
  async sweep(): Promise<void> {
    await this.#minded();
    for (const work of this.#sweeps(await this.#hour())) await this.#rows.run(work);
  }

  /**
   * As `sweep`, if anything is due and nobody else is at it; otherwise waits until that is done. For who is about to show
   * it, where nobody has looked since the last request.
   */
  async sweepDue(): Promise<void> {
    const due = this.#sweeps(await this.#hour()).map((work) => work.due);
    const since = this.#steady();
    while (await hasDue(this.#database.reader, due)) {
      if (await this.#lease.isHeld()) return this.#sweepAndLetGo();
      if (this.#steady() - since > MOST_WAIT_MS) return;
      await pause(LOOK_AGAIN_MS);
      // what is due still, somebody has tried in vain since this was asked
      const begunMs = await this.#lease.doneSinceMs();
      if (begunMs !== null && begunMs <= this.#steady() - since) return;
    }
  }

  async #sweepAndLetGo(): Promise<void> {
    const since = this.#steady();
    // if it can't be let go, its term runs out
    await this.sweep().finally(() => this.#lease.letGo(this.#steady() - since).catch(() => {}));
  }

  #sweeps(hour: Hour): RowWork[] {
    // where no process lasts, any request is answered by somebody
    const hearsSince = this.#lasts ? Math.ceil(hour.now - (this.#looked.at - this.#looked.since)) : 0;
    const server = { database: this.#database, rows: this.#rows, hearsSince };
    const terms = { replyOverdueMs: this.#replyOverdueMs, undeliveredMs: this.#undeliveredMs };
    return dueWork({ ...server, ...terms }, hour);
  }

  /** The time is read first: a clock moved before or after the check is not trusted. */
  async #hour(): Promise<Hour> {
    const now = this.#now();
    // where no process lasts, the host keeps the clock
    if (!this.#lasts) return { now, isSure: true };
    const steady = this.#steady();
    if (steady - this.#looked.at > DEAF_AFTER_MS) this.#looked.since = steady;
    this.#looked.at = steady;
    if (steady - this.#newest.readAt >= NEWEST_EVERY_MS) {
      this.#newest = { at: await newestReceived(this.#database.reader), readAt: steady };
    }
    return { now, isSure: this.#trust.look(this.#newest.at) };
  }

  /** Comes before anything that uses the clock: at the start, and when it was moved, terms are cut to it. */
  #minded(): Promise<void> {
    if (!this.#lasts) return Promise.resolve();
    this.#cutting = this.#cutting.catch(() => {}).then(() => this.#cut());
    return this.#cutting;
  }

  async #cut(): Promise<void> {
    const moved = this.#clock.step();
    if (moved === 0 && this.#step === 0) return;
    // kept until done: if the database is held up, terms are cut later
    const step = (this.#step ?? 0) + moved;
    this.#step = step;
    await this.#database.writes.run((transaction) => cutTerms(transaction, this.#now(), step));
    this.#step = 0;
  }

  #claim({ id, agentId, runner }: CommandStream, after: number) {
    return this.#database.writes.run(
      (transaction) => claimCommands(transaction, { agentId, runner, streamId: id, after, now: this.#now() }),
      aboutAgent(agentId),
    );
  }

  #ended(stream: CommandStream, isGone: boolean): void {
    this.#disconnect(stream, isGone);
    this.#endings.get(stream)?.();
    this.#endings.delete(stream);
  }

  #disconnect(stream: CommandStream, isGone: boolean): void {
    if (this.#streams.get(stream.agentId) === stream) this.#streams.delete(stream.agentId);
    this.#followIfHeard();
    // A runner that was sent away comes back at once; if it does not, its term runs out.
    if (!isGone) return;
    this.#database.writes
      .run(
        (transaction) => disconnectRunner(transaction, stream.agentId, stream.id, this.#now()),
        aboutAgent(stream.agentId),
      )
      .then(() => void this.#failing.delete('end'))
      .catch((error) => this.#failed('end', error));
  }

  /** What others commit matters here only to runners that listen. Each stream looks once itself after it has begun. */
  #followIfHeard(): void {
    if (this.#streams.size > 0) {
      this.#unfollow ??= this.#database.follow(() => void this.#hear(), POLL_MS);
      return;
    }
    this.#unfollow?.();
    this.#unfollow = null;
  }

  async #look(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      await this.#minded();
      const hour = await this.#hour();
      const { now } = hour;
      const [overdue, due, current] = await this.#database.reader.batch(
        [
          isAnyDue(this.#sweeps(hour).map(({ due }) => due)),
          this.#queued(now),
          {
            sql: `SELECT stream_id, alive_until FROM runners WHERE stream_id IN (SELECT value FROM json_each(?))`,
            args: [JSON.stringify([...this.#streams.values()].map(({ id }) => id))],
          },
        ],
        'read',
      );
      const newest = new Map((current?.rows ?? []).map((row) => [String(row.stream_id), row.alive_until]));
      for (const stream of [...this.#streams.values()]) {
        // The next wake finds out that another stream has taken over.
        if (!newest.has(stream.id)) stream.wake();
        // Its term ran out while the database was held up. The runner is there, and shows it by connecting again.
        else if (newest.get(stream.id) === null) stream.close('slow');
      }
      for (const row of due?.rows ?? []) this.wake(String(row.agent_id));
      if (Number(overdue?.rows[0]?.is_any_due) === 1 && (await this.#lease.isHeld())) {
        // where processes don't last, this one may be the next to freeze
        await (this.#lasts ? this.sweep() : this.#sweepAndLetGo());
      }
      this.#failing.delete('look');
    } catch (error) {
      this.#failed('look', error);
    } finally {
      this.#isPolling = false;
    }
  }

  /** The agents that listen here and have commands which nobody holds. */
  #queued(now: number): InStatement {
    return {
      sql: `SELECT wanted.value AS agent_id FROM json_each(?1) AS wanted WHERE EXISTS (
              SELECT 1 FROM commands INDEXED BY commands_open_by_agent WHERE agent_id = wanted.value
                AND state IN ('queued', 'delivered') AND state = 'queued' AND ifnull(lease_until, 0) <= ?2)`,
      args: [JSON.stringify([...this.#streams.keys()]), now],
    };
  }

  /** Another process may have queued something: looked at while anybody listens here, one look at a time. */
  async #hear(): Promise<void> {
    this.#hasMoved = true;
    if (this.#isHearing) return;
    this.#isHearing = true;
    try {
      while (this.#hasMoved && this.#streams.size > 0) {
        this.#hasMoved = false;
        const { rows } = await this.#database.reader.execute(this.#queued(this.#now()));
        for (const row of rows) this.wake(String(row.agent_id));
      }
    } catch {
      // the next look tells what is wrong, if it still is
    } finally {
      this.#isHearing = false;
    }
  }

  async #renew(): Promise<void> {
    const ids = [...this.#streams.values()].map(({ id }) => id);
    if (ids.length === 0) return;
    try {
      await this.#minded();
      const mute = await this.#database.writes.run(async (transaction) => {
        const gone = await disconnectMute(transaction, ids, this.#now());
        await renewRunners(transaction, ids, this.#now());
        return new Set(gone);
      });
      // A runner that only slept finds its stream ended and reconnects at once.
      for (const stream of [...this.#streams.values()]) if (mute.has(stream.id)) stream.close('slow');
      this.#failing.delete('renew');
    } catch (error) {
      this.#failed('renew', error);
    }
  }

  #failed(work: Work, error: unknown): void {
    // while the database fails, signs of life of runners may be missing in it
    this.#looked.since = this.#steady();
    // Once the hub or its database is closed, there is nothing left to watch.
    const isClosed = this.#isClosed || databaseErrorCode(error) === 'CLIENT_CLOSED';
    if (isClosed) this.close();
    // damage has been logged already
    const isSaid = isClosed || this.#failing.size > 0 || this.#database.damage.code !== null;
    if (!isSaid) serverLog('error', 'commands are held up:', { error: inShort(error) });
    this.#failing.add(work);
  }
}

type Work = 'look' | 'renew' | 'end';

/** Its last command may be gone by its age: its row has changed since, when its runner went. */
const OWN_NEWEST = `SELECT max(position) AS position FROM (
  SELECT position FROM commands WHERE agent_id = ?1 UNION ALL SELECT updated_position FROM agents WHERE id = ?1)`;

function aboutAgent(agentId: string): JobOptions {
  return { keys: [`agent:${agentId}`] };
}
