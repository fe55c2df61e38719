import { AppError, forLog } from '@interlude/protocol/errors';
import type { FrameData } from '@interlude/protocol/frames';
import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { positionFromNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { encodeFrame, HEARTBEAT, type Topic } from '@interlude/protocol/sse';
import type { Database } from '@/db/client';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { OpenStream, OpenStreams, Sink, WatchAccess } from '@/lib/server/access/streamed-response';
import {
  type Bounds,
  type EventRow,
  type RowLimits,
  type RowPage,
  readBounds,
} from '@/lib/server/event-log/read-after';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import { Broadcast, topicFilter } from './broadcast';
import { catchUp } from './catch-up';
import { RowRedactor } from './encode-row';
import { encodeText, Subscriber, type SubscriberLimits } from './subscriber';
import { Tailer } from './tailer';

export interface FanOutOptions extends SubscriberLimits {
  heartbeatMs: number;
  /** Poll interval for rows of other processes. */
  pollMs: number;
  /** Limits for one page while catching up. */
  page: RowLimits;
  /** Limits for one read of the tailer. */
  tick: RowLimits;
  streams: OpenStreams | null;
  telemetry: Telemetry | null;
}

export interface Subscription {
  topics: readonly Topic[];
  scope: Scope;
  /** True to redact secrets. */
  redacts?: boolean;
  digests?: ShownDigests;
  /** Position to resume after; null for "from now". */
  after: number | null;
  /** Aborts when the reader has disconnected. */
  signal: AbortSignal;
  /** Milliseconds until the stream sends `bye` and ends; null for no limit. */
  maxMs?: number | null;
  /** Id of the reader's credential, which selects its queue among the heavy reads. */
  client?: string;
  whenOver?: WatchAccess;
}

const DEFAULTS: FanOutOptions = {
  heartbeatMs: HEARTBEAT_MS,
  pollMs: 1000,
  page: { rows: 500, bytes: 1024 * 1024 },
  tick: { rows: 1000, bytes: 4 * 1024 * 1024 },
  readAheadBytes: 64 * 1024,
  // More than accumulates during a short stall. A thousand slow readers share one copy of a chunk.
  maxBacklogBytes: 4 * 1024 * 1024,
  lingerMs: 10_000,
  streams: null,
  telemetry: null,
};

const HEARTBEAT_CHUNK = encodeText(HEARTBEAT);

/**
 * All streams of a database in this process. One tailer serves them, and runs while there are streams.
 *
 * Ordering: a stream sends `hello`, rows in position order, `up-to-date`, rows in position order.
 * Failure: a stream ends (planned, slow, shutdown, failed) but never skips a row; see Subscriber.
 */
export class FanOut {
  readonly #database: Database;
  readonly #options: FanOutOptions;
  readonly #broadcast: Broadcast;
  readonly #tailer: Tailer;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;
  #hasLoggedFailure = false;

  constructor(database: Database, options: Partial<FanOutOptions> = {}) {
    this.#database = database;
    this.#options = { ...DEFAULTS, ...options };
    this.#broadcast = new Broadcast(new RowRedactor(database.tail));
    this.#tailer = new Tailer({
      database,
      limits: this.#options.tick,
      pollMs: this.#options.pollMs,
      filter: () => this.#broadcast.filter(),
      publish: (page, from, completeTo) => this.#publish(page, from, completeTo),
    });
  }

  get subscriberCount(): number {
    return this.#broadcast.size;
  }

  /** The timers here don't keep the process alive. */
  get isIdle(): boolean {
    return !this.#tailer.isRunning && this.#heartbeat === undefined;
  }

  /**
   * @returns a function that starts the stream on a sink
   * @throws AppError `unavailable` while shutting down; errors of the database
   */
  async subscribe(subscription: Subscription): Promise<OpenStream> {
    const { topics, scope, redacts = false, digests = PLAIN_DIGESTS, after, client = '' } = subscription;
    const filter = topicFilter(topics, scope);
    const start = resume(after, await readBounds(this.#database, filter));
    if (this.#isClosed) {
      throw new AppError('unavailable', 'Interlude is shutting down. Open the stream again in a moment.', {
        headers: { 'retry-after': '1' },
      });
    }
    return (sink) => {
      const subscriber = this.#start(sink, subscription, start);
      const { page } = this.#options;
      const redactor = redacts ? new RowRedactor(this.#database.reader) : null;
      catchUp(subscriber, this.#database, this.#tailer, filter, start, page, client, redactor, digests).then(
        () => {
          this.#hasLoggedFailure = false;
        },
        (error) => {
          if (subscriber.isEnded) return;
          this.#logFailure(error);
          subscriber.fail(error);
        },
      );
      return { drained: () => subscriber.drained(), disconnected: () => subscriber.abandon() };
    };
  }

  async #publish(page: RowPage, from: number, completeTo: number): Promise<number> {
    const { telemetry } = this.#options;
    if (telemetry?.published === undefined) return this.#broadcast.publish(page, from, completeTo);
    const [at, startedAt] = [Date.now(), performance.now()];
    const subscribers = await this.#broadcast.publish(page, from, completeTo);
    const tookMs = performance.now() - startedAt;
    const oldest = page.rows.find(({ kind }) => kind === 'event') as EventRow | undefined;
    const lagMs = oldest === undefined ? null : Math.max(at + tookMs - oldest.receivedAt, 0);
    telemetry.published({ rows: page.rows.length, subscribers, at, tookMs, lagMs });
    return subscribers;
  }

  #start(sink: Sink, subscription: Subscription, start: Start): Subscriber {
    const { topics, scope, redacts = false, digests = PLAIN_DIGESTS, signal, maxMs = null, whenOver } = subscription;
    const cleanUps: (() => void)[] = [];
    const subscriber = new Subscriber(sink, this.#options, () => {
      for (const cleanUp of cleanUps) cleanUp();
      if (this.#broadcast.size === 0) this.#stop();
    });
    cleanUps.push(this.#broadcast.add(topics, { scope, redacts, digests }, subscriber));
    if (whenOver !== undefined) cleanUps.push(whenOver(() => subscriber.close('unauthorized')));
    const abandon = () => subscriber.abandon();
    signal.addEventListener('abort', abandon);
    cleanUps.push(() => signal.removeEventListener('abort', abandon));
    if (maxMs !== null) {
      const timer = setTimeout(() => subscriber.close('planned'), maxMs);
      cleanUps.push(() => clearTimeout(timer));
    }
    const ended = this.#options.streams?.begin();
    if (ended !== undefined) cleanUps.push(ended);
    this.#run(start.newest);
    const hello = { resume: start.resume, position: positionFromNumber(start.after) };
    subscriber.send(encodeText(encodeFrame({ event: 'hello', data: hello })));
    if (this.#isClosed) subscriber.close('shutdown');
    if (signal.aborted) subscriber.abandon();
    return subscriber;
  }

  /** Sends `bye` to all readers and accepts no new ones, so the server can stop without cutting anyone off. */
  close(reason: FrameData['bye']['reason'] = 'shutdown'): void {
    this.#isClosed = true;
    for (const subscriber of [...this.#broadcast.subscribers()]) subscriber.close(reason);
  }

  /** Logs the first of several failures. Damage has already been logged. */
  #logFailure(error: unknown): void {
    if (this.#hasLoggedFailure || this.#database.damage.code !== null) return;
    this.#hasLoggedFailure = true;
    serverLog('error', 'a stream failed while catching up:', { error: forLog(error) });
  }

  #run(position: number): void {
    this.#tailer.start(position);
    this.#heartbeat ??= setInterval(() => {
      for (const subscriber of this.#broadcast.subscribers()) subscriber.sendHeartbeat(HEARTBEAT_CHUNK);
    }, this.#options.heartbeatMs);
  }

  #stop(): void {
    this.#tailer.stop();
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}

type Start = Bounds & { resume: 'ok' | 'gap'; after: number };

/**
 * Decides where a stream starts. A position from another database, or from before retention's last removal, results in
 * a `gap`: the stream starts now, and its client reloads its snapshot. Position 0 is always valid.
 */
export function resume(after: number | null, bounds: Bounds): Start {
  if (after === null) return { ...bounds, resume: 'ok', after: bounds.latest };
  const isBeyond = after > 0 && after < bounds.oldest;
  if (after > bounds.latest || isBeyond) return { ...bounds, resume: 'gap', after: bounds.latest };
  return { ...bounds, resume: 'ok', after };
}
