import { AppError, forLog } from '@interlude/protocol/errors';
import { idSchema } from '@interlude/protocol/field-schemas';
import { HEARTBEAT_MS, RUNNER_AWAY_MS } from '@interlude/protocol/limits';
import { isPosition, positionToNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { databaseErrorCode } from '@/db/database-error';
import { isAnyDue } from '@/db/row-sweep';
import { columnText } from '@/db/table-rows';
import type { JobOptions } from '@/db/writes';
import { unref } from '@/db/yield-to-loop';
import type { RequestContext } from '@/lib/server/access/request-context';
import {
  type OpenStream,
  type OpenStreams,
  StreamedResponse,
  type WatchAccess,
} from '@/lib/server/access/streamed-response';
import type { CommandServer } from './accept-command';
import { CommandStream, claimCommands } from './command-stream';
import { renewLogLevel, renewWakeRules } from './desired-state';
import { type DueContext, DueWork } from './due-work';
import {
  connectRunner,
  disconnectRunner,
  disconnectUnresponsive,
  type RunnerRef,
  renewRunners,
  runnerIn,
} from './runner-connection';

/** Poll interval for commands of other processes, expired leases and due work. */
const POLL_MS = 1_000;
/** Interval at which leases of connected runners are renewed: three times per term. */
const RENEW_MS = RUNNER_AWAY_MS / 3;

/** Periodic jobs. A failure is logged once, until the job succeeds. */
type Job = 'poll' | 'renew' | 'end';

/**
 * This process's command streams, one per agent, and the due work.
 *
 * Ordering: a stored command wakes the agent's stream, immediately in this process and at the next poll in others.
 * Failure: the database holds all of the hub's state, so a process that dies loses only wake-ups.
 */
export class CommandHub {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #due: DueWork;
  /** True if the process outlives its requests. */
  readonly #isLongLived: boolean;
  readonly #openStreams: OpenStreams | undefined;
  readonly #streams = new Map<string, CommandStream>();
  readonly #cleanups = new Map<CommandStream, () => void>();
  #timers: ReturnType<typeof setInterval>[] | null = null;
  #isPolling = false;
  #isWaking = false;
  #hasMoved = false;
  #unfollow: (() => void) | null = null;
  readonly #failing = new Set<Job>();
  #isClosed = false;

  constructor(context: DueContext) {
    this.#database = context.database;
    this.#now = context.now;
    this.#due = new DueWork(context);
    this.#isLongLived = (context.kind ?? 'shared') === 'shared';
    this.#openStreams = context.streams;
  }

  /** Starts the timers, which also do the due work while no runner is connected. */
  start(): void {
    if (this.#timers !== null || this.#isClosed) return;
    const sendHeartbeat = () => {
      for (const stream of this.#streams.values()) stream.sendHeartbeat();
    };
    this.#timers = [
      setInterval(() => void this.#poll(), POLL_MS),
      setInterval(sendHeartbeat, HEARTBEAT_MS),
      setInterval(() => void this.#renew(), RENEW_MS),
    ];
    for (const timer of this.#timers) unref(timer);
    void this.#poll();
  }

  /** Sends an agent's new commands. */
  wake(agentId: string): void {
    this.#streams.get(agentId)?.wake();
  }

  /**
   * Opens an agent's stream and ends its previous one.
   *
   * @param after position of the last command that the runner has; 0 for none
   * @param signal aborts when the runner disconnects
   * @param maxMs milliseconds until the stream sends `bye`; null for never
   * @param by the credential's scope, and a function that watches for its end
   * @throws AppError `unavailable` while shutting down, and errors of the database
   */
  async open(
    agentId: string,
    runner: RunnerRef,
    after: number,
    signal: AbortSignal,
    maxMs: number | null,
    { whenOver, scope }: { whenOver: WatchAccess; scope: Scope },
  ): Promise<OpenStream> {
    if (this.#isClosed) {
      throw new AppError('unavailable', 'Interlude is shutting down. Open the stream again in a moment.', {
        headers: { 'retry-after': '1' },
      });
    }
    // A process that may freeze does due work only while a stream is open.
    if (this.#isLongLived) this.start();
    // The counter reveals how busy other agents are, so a runner with a scope gets its own newest position.
    const showsCounter = scope.kind === 'everything';
    const newest = showsCounter ? 'SELECT position FROM counter' : { sql: OWN_NEWEST, args: [agentId] };
    const { rows } = await this.#database.reader.execute(newest);
    const isBeyond = after > Number(rows[0]?.position ?? 0);
    const stream = new CommandStream({
      agentId,
      runner,
      showsCounter,
      // A position from another database means nothing here, so all open commands are sent. The runner deduplicates
      // them by id.
      after: isBeyond ? 0 : after,
      claim: (self, from) => this.#claim(self, from),
      onEnd: (self, isGone) => this.#ended(self, isGone),
    });
    let isMore = false;
    const about = aboutAgent(agentId);
    const outcome = await this.#database.writes.run(async (transaction) => {
      const connection = await connectRunner(transaction, agentId, runner, stream.id, this.#now());
      if (connection.kind === 'connected') {
        await renewLogLevel(transaction, agentId, runner.id, this.#now());
        isMore = await renewWakeRules(transaction, agentId, this.#now());
      }
      return connection;
    }, about);
    while (isMore) isMore = await this.#database.writes.run((tx) => renewWakeRules(tx, agentId, this.#now()), about);
    if (outcome.kind === 'fenced') {
      stream.fence(outcome.by);
      return stream.open;
    }
    const before = this.#streams.get(agentId);
    this.#streams.set(agentId, stream);
    const timer = maxMs === null ? undefined : setTimeout(() => stream.close('planned'), maxMs);
    unref(timer);
    const ended = this.#openStreams?.begin();
    this.#cleanups.set(stream, () => {
      clearTimeout(timer);
      ended?.();
    });
    this.#followWhileStreaming();
    if (before !== undefined && before.runner.id !== runner.id) before.fence(runner);
    else before?.close('replaced');
    signal.addEventListener('abort', () => stream.abandon(), { once: true });
    stream.whenOver(whenOver);
    stream.sendHello(isBeyond ? 'gap' : 'ok');
    // The hub may close during the write.
    if (this.#isClosed) stream.close('shutdown');
    if (signal.aborted) stream.abandon();
    stream.wake();
    return stream.open;
  }

  /** Sends `bye` to every runner. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers ?? []) clearInterval(timer);
    for (const stream of [...this.#streams.values()]) stream.close('shutdown');
  }

  sweep(): Promise<void> {
    return this.#due.sweep();
  }

  sweepDue(): Promise<void> {
    return this.#due.sweepDue();
  }

  #claim({ id, agentId, runner }: CommandStream, after: number) {
    return this.#database.writes.run(
      (transaction) => claimCommands(transaction, { agentId, runner, streamId: id, after, now: this.#now() }),
      aboutAgent(agentId),
    );
  }

  #ended(stream: CommandStream, isGone: boolean): void {
    const { agentId } = stream;
    if (this.#streams.get(agentId) === stream) this.#streams.delete(agentId);
    this.#followWhileStreaming();
    // A runner whose stream the server closed reconnects immediately. If it doesn't, its term expires.
    if (isGone) {
      this.#database.writes
        .run((transaction) => disconnectRunner(transaction, agentId, stream.id, this.#now()), aboutAgent(agentId))
        .then(() => void this.#failing.delete('end'))
        .catch((error) => this.#failed('end', error));
    }
    this.#cleanups.get(stream)?.();
    this.#cleanups.delete(stream);
  }

  /** Follows the commits of other processes while a runner is connected here. */
  #followWhileStreaming(): void {
    if (this.#streams.size > 0) {
      this.#unfollow ??= this.#database.follow(() => void this.#wakeQueued(), POLL_MS);
      return;
    }
    this.#unfollow?.();
    this.#unfollow = null;
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      await this.#due.clamp();
      const clock = await this.#due.readClock();
      const [overdue, queued, current] = await this.#database.reader.batch(
        [
          isAnyDue(this.#due.all(clock).map(({ due }) => due)),
          this.#queued(clock.now),
          {
            sql: `SELECT stream_id, alive_until FROM runners WHERE stream_id IN (SELECT value FROM json_each(?))`,
            args: [JSON.stringify([...this.#streams.values()].map(({ id }) => id))],
          },
        ],
        'read',
      );
      const newest = new Map((current?.rows ?? []).map((row) => [String(row.stream_id), row.alive_until]));
      for (const stream of [...this.#streams.values()]) {
        // Another stream has taken over, which the next claim detects.
        if (!newest.has(stream.id)) stream.wake();
        // The term expired while the database was blocked. A live runner reconnects.
        else if (newest.get(stream.id) === null) stream.close('slow');
      }
      for (const row of queued?.rows ?? []) this.wake(String(row.agent_id));
      if (Number(overdue?.rows[0]?.is_any_due) === 1 && (await this.#due.lease.acquire())) {
        // A short-lived process may freeze next, so it releases the lease.
        await (this.#isLongLived ? this.sweep() : this.#due.sweepAndRelease());
      }
      this.#failing.delete('poll');
    } catch (error) {
      this.#failed('poll', error);
    } finally {
      this.#isPolling = false;
    }
  }

  /** Agents with a stream here that have unleased commands. */
  #queued(now: number): InStatement {
    return {
      sql: `SELECT wanted.value AS agent_id FROM json_each(?1) AS wanted WHERE EXISTS (
              SELECT 1 FROM commands INDEXED BY commands_open_by_agent WHERE agent_id = wanted.value
                AND state IN ('queued', 'delivered') AND state = 'queued' AND ifnull(lease_until, 0) <= ?2)`,
      args: [JSON.stringify([...this.#streams.keys()]), now],
    };
  }

  /** Runs one query at a time, and repeats it if another process committed meanwhile. */
  async #wakeQueued(): Promise<void> {
    this.#hasMoved = true;
    if (this.#isWaking) return;
    this.#isWaking = true;
    try {
      while (this.#hasMoved && this.#streams.size > 0) {
        this.#hasMoved = false;
        const { rows } = await this.#database.reader.execute(this.#queued(this.#now()));
        for (const row of rows) this.wake(String(row.agent_id));
      }
    } catch {
      // Ignored: if the failure lasts, the next poll reports it.
    } finally {
      this.#isWaking = false;
    }
  }

  async #renew(): Promise<void> {
    const ids = [...this.#streams.values()].map(({ id }) => id);
    if (ids.length === 0) return;
    try {
      await this.#due.clamp();
      const unresponsive = await this.#database.writes.run(async (transaction) => {
        const gone = await disconnectUnresponsive(transaction, ids, this.#now());
        await renewRunners(transaction, ids, this.#now());
        return new Set(gone);
      });
      // A runner whose machine was only asleep reconnects immediately.
      for (const stream of [...this.#streams.values()]) if (unresponsive.has(stream.id)) stream.close('slow');
      this.#failing.delete('renew');
    } catch (error) {
      this.#failed('renew', error);
    }
  }

  #failed(job: Job, error: unknown): void {
    this.#due.databaseFailed();
    const isClosed = this.#isClosed || databaseErrorCode(error) === 'CLIENT_CLOSED';
    if (isClosed) this.close();
    // Damage to the database has already been logged.
    const isLogged = isClosed || this.#failing.size > 0 || this.#database.damage.code !== null;
    if (!isLogged) serverLog('error', 'commands: delivery is delayed:', { error: forLog(error) });
    this.#failing.add(job);
  }
}

/**
 * The agent's newest position. Retention may have removed its last command, but the agent's row changed later, when its
 * runner left.
 */
const OWN_NEWEST = `SELECT max(position) AS position FROM (
  SELECT position FROM commands WHERE agent_id = ?1 UNION ALL SELECT updated_position FROM agents WHERE id = ?1)`;

function aboutAgent(agentId: string): JobOptions {
  return { keys: [`agent:${agentId}`] };
}

/**
 * `GET /agents/:id/commands?runner=<id>&startedAt=<ms>&after=<position>`: a runner's stream of commands. An unknown
 * agent is created.
 *
 * @throws AppError `invalid_argument`, `unavailable` while shutting down
 */
export async function getCommands(
  { request, ids: { agentId }, principal, whenOver }: RequestContext<'agentId'>,
  server: CommandServer & { commands: CommandHub },
): Promise<Response> {
  if (!idSchema.safeParse(agentId).success) {
    throw new AppError(
      'invalid_argument',
      'An agent’s id has 1 to 256 UTF-16 code units, none of them NUL, and is not . or ..',
    );
  }
  const after = request.headers.get('last-event-id') || new URL(request.url).searchParams.get('after') || '0';
  if (!isPosition(after)) {
    throw new AppError(
      'invalid_argument',
      `${JSON.stringify(after)} is not a position. Send the id of the last command you received, or omit it to get all open commands.`,
      { details: { after } },
    );
  }
  // An unnamed runner counts as a new one at each connection. It yields to any named runner, so a person who watches a
  // stream locks no runner out.
  const runner = runnerIn(request) ?? { id: `${server.now()}-${crypto.randomUUID()}`, startedAt: 0 };
  const open = await server.commands.open(
    columnText(agentId),
    runner,
    positionToNumber(after),
    request.signal,
    server.streamMaxMs,
    { whenOver, scope: principal.scope },
  );
  return new StreamedResponse(open, SSE_HEADERS);
}
