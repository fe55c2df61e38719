import { AppError, inShort } from '@interlude/protocol/errors';
import type { FrameData, Topic } from '@interlude/protocol/frames';
import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { positionFromNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { encodeFrame, HEARTBEAT } from '@interlude/protocol/sse';
import type { Database } from '@/db/client';
import type { OpenStreams } from '@/lib/server/access/open-streams';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { Opener, Sink } from '@/lib/server/access/stream-answer';
import type { EventRow, RowLimits } from '@/lib/server/event-log/read-after';
import { type Bounds, type RowPage, readBounds } from '@/lib/server/event-log/read-after';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import { Broadcast, topicFilter } from './broadcast';
import { catchUp } from './catch-up';
import { RowRedactor } from './row-frame';
import { encodeText, Subscriber, type SubscriberLimits } from './subscriber';
import { Tailer } from './tailer';

export interface FanOutOptions extends SubscriberLimits {
  heartbeatMs: number;
  /** How often to look for rows that another process wrote. */
  pollMs: number;
  /** Limit of one read while catching up. */
  page: RowLimits;
  /** Limit of one read of the tailer. */
  tick: RowLimits;
  /** Is told of each stream that opens. */
  streams: OpenStreams | null;
  /** Is told of each tick. */
  telemetry: Telemetry | null;
}

/** Who wants to hear what. */
export interface Subscription {
  topics: readonly Topic[];
  scope: Scope;
  /** Whether it is told no secrets. */
  redacts?: boolean;
  /** By default plain. */
  digests?: ShownDigests;
  /** Where to resume; null for "from now". */
  after: number | null;
  /** Aborted when the reader is gone. */
  signal: AbortSignal;
  /** When to say `bye` and end; null for never. */
  maxMs?: number | null;
  /** The id of the reader's credential, for its place in line. */
  client?: string;
  /** Calls back once the reader may not listen any more. @returns how to stop that */
  whenOver?: (onEnd: () => void) => () => void;
}

const DEFAULTS: FanOutOptions = {
  heartbeatMs: HEARTBEAT_MS,
  pollMs: 1000,
  page: { rows: 500, bytes: 1024 * 1024 },
  tick: { rows: 1000, bytes: 4 * 1024 * 1024 },
  readAheadBytes: 64 * 1024,
  // Chunks are shared, so that a thousand slow readers hold one copy. More than a reader can lose to a short stall.
  maxBacklogBytes: 4 * 1024 * 1024,
  lingerMs: 10_000,
  streams: null,
  telemetry: null,
};

const HEARTBEAT_CHUNK = encodeText(HEARTBEAT);

/**
 * All streams of one database in this process, over one tailer, which runs while anybody listens.
 *
 * Ordering: each stream is `hello`, rows in position order, `up-to-date`, rows in position order.
 * Failure: a stream ends (planned, slow, shutdown, or broken off) but never skips; see Subscriber.
 */
export class FanOut {
  readonly #database: Database;
  readonly #options: FanOutOptions;
  readonly #broadcast: Broadcast;
  readonly #tailer: Tailer;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;
  #isBroken = false;

  constructor(database: Database, options: Partial<FanOutOptions> = {}) {
    this.#database = database;
    this.#options = { ...DEFAULTS, ...options };
    this.#broadcast = new Broadcast(new RowRedactor(database.tail));
    this.#tailer = new Tailer({
      database,
      limits: this.#options.tick,
      pollMs: this.#options.pollMs,
      wanted: () => this.#broadcast.wanted(),
      publish: (page, from, whole) => this.#publish(page, from, whole),
    });
  }

  get subscriberCount(): number {
    return this.#broadcast.size;
  }

  /** Whether anything in it would keep a process alive. */
  get isIdle(): boolean {
    return !this.#tailer.isRunning && this.#heartbeat === undefined;
  }

  /**
   * @returns how the stream begins, once there is something to write it to
   * @throws AppError `unavailable` while shutting down, and what the database throws
   */
  async subscribe(wish: Subscription): Promise<Opener> {
    const { topics, scope, redacts = false, digests = PLAIN_DIGESTS, after, client = '' } = wish;
    const wanted = topicFilter(topics, scope);
    const start = resume(after, await readBounds(this.#database, wanted));
    if (this.#isClosed) {
      throw new AppError('unavailable', 'Interlude is shutting down. Open the stream again in a moment.', {
        headers: { 'retry-after': '1' },
      });
    }
    return (sink) => {
      const subscriber = this.#begin(sink, wish, start);
      const { page } = this.#options;
      const redactor = redacts ? new RowRedactor(this.#database.reader) : null;
      catchUp(subscriber, this.#database, this.#tailer, wanted, start, page, client, redactor, digests).then(
        () => {
          this.#isBroken = false;
        },
        (error) => {
          if (subscriber.isEnded) return;
          this.#sayBroken(error);
          subscriber.fail(error);
        },
      );
      return { drained: () => subscriber.drained(), gone: () => subscriber.abandon() };
    };
  }

  async #publish(page: RowPage, from: number, whole: number): Promise<number> {
    const { telemetry } = this.#options;
    if (telemetry?.published === undefined) return this.#broadcast.publish(page, from, whole);
    const [at, beganAt] = [Date.now(), performance.now()];
    const subscribers = await this.#broadcast.publish(page, from, whole);
    const tookMs = performance.now() - beganAt;
    const stored = oldestOf(page);
    const lagMs = stored === null ? null : Math.max(at + tookMs - stored, 0);
    telemetry.published({ rows: page.rows.length, subscribers, at, tookMs, lagMs });
    return subscribers;
  }

  #begin(sink: Sink, wish: Subscription, start: Start): Subscriber {
    const { topics, scope, redacts = false, digests = PLAIN_DIGESTS, signal, maxMs = null, whenOver } = wish;
    const cleanUps: (() => void)[] = [];
    const subscriber = new Subscriber(sink, this.#options, () => {
      for (const cleanUp of cleanUps) cleanUp();
      if (this.#broadcast.size === 0) this.#rest();
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
    this.#wakeUp(start.newest);
    const hello = { resume: start.resume, position: positionFromNumber(start.after) };
    subscriber.send(encodeText(encodeFrame({ event: 'hello', data: hello })));
    if (this.#isClosed) subscriber.close('shutdown');
    if (signal.aborted) subscriber.abandon();
    return subscriber;
  }

  /** Says `bye` to everybody and accepts nobody new, so that a server can stop without cutting anyone off. */
  close(reason: FrameData['bye']['reason'] = 'shutdown'): void {
    this.#isClosed = true;
    for (const subscriber of [...this.#broadcast.subscribers()]) subscriber.close(reason);
  }

  /** Logged once for all streams that break before the next one catches up; damage has been logged already. */
  #sayBroken(error: unknown): void {
    if (this.#isBroken || this.#database.damage.code !== null) return;
    this.#isBroken = true;
    serverLog('error', 'a stream broke off while it caught up:', { error: inShort(error) });
  }

  #wakeUp(position: number): void {
    this.#tailer.start(position);
    this.#heartbeat ??= setInterval(() => {
      for (const subscriber of this.#broadcast.subscribers()) subscriber.beat(HEARTBEAT_CHUNK);
    }, this.#options.heartbeatMs);
  }

  #rest(): void {
    this.#tailer.stop();
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}

/** When the first event among the rows was received; null if there is none. */
function oldestOf({ rows }: RowPage): number | null {
  const event = rows.find(({ kind }) => kind === 'event') as EventRow | undefined;
  return event?.receivedAt ?? null;
}

type Start = Bounds & { resume: 'ok' | 'gap'; after: number };

/**
 * Where a stream begins. What can't be resumed is a `gap`: the position is of another database or from beyond
 * retention. Such a stream begins now, and its client loads its snapshot again. The beginning is where it always was:
 * before all that is there.
 */
export function resume(after: number | null, bounds: Bounds): Start {
  if (after === null) return { ...bounds, resume: 'ok', after: bounds.latest };
  const isBeyond = after > 0 && after < bounds.oldest;
  if (after > bounds.latest || isBeyond) return { ...bounds, resume: 'gap', after: bounds.latest };
  return { ...bounds, resume: 'ok', after };
}
