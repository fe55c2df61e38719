import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { comparePositions, type Position } from '@interlude/protocol/position';
import { retryDelayMs } from '@interlude/protocol/sse';
import {
  type ConnectionEvent,
  type ConnectionState,
  initialConnectionState,
  isStale,
  nextConnectionState,
} from './connection-state';
import { type ReceivedFrame, readStream } from './read-stream';
import { type RowFrame, topicOf } from './row-frame';

/** Subscriptions come in bursts and share one request. */
const GATHER_MS = 10;
const RECONNECT = { firstMs: 500, longestMs: 10_000 };
/** An unused topic stays on the stream this long, so that going back and forth doesn't reconnect. */
const LINGER_MS = 20_000;
/** A gap stays visible at least this long. */
const GAP_SHOWN_MS = 20_000;
/** An attempt that is silent for this long is replaced on `wake`. */
const HOPELESS_MS = 3_000;

export interface TopicReader {
  frames(frames: RowFrame[]): void;
  /** Rows were missed. Reload the snapshot, then subscribe after its position. */
  reset(): void;
}

interface Subscription {
  topic: string;
  reader: TopicReader;
  /** Last position delivered to this reader. Repeated rows are dropped. */
  seen: Position;
}

interface Options {
  onState?: (state: ConnectionState) => void;
  fetch?: typeof fetch;
  now?: () => number;
  random?: () => number;
}

/**
 * The live connection: any number of readers and topics on one `GET /stream`.
 *
 * Ordering: positions come from one counter, so a frame at N completes all topics of the stream up to N. A new topic
 * reopens the stream at the smallest position needed; repeated rows are dropped here.
 * Failure: a disconnect, silence, `bye` or a changed set of topics resumes by position. A `gap` resets the readers.
 * Silence is measured across streams: opening one while the server is away doesn't count as activity.
 */
export class LiveConnection {
  readonly #options: Required<Omit<Options, 'fetch'>> & { fetch: typeof fetch | undefined };
  readonly #subscriptions = new Set<Subscription>();
  readonly #buffers = new Map<string, TopicBuffer>();
  /** Unused topics, each with the timer that drops it. */
  readonly #lingering = new Map<string, ReturnType<typeof setTimeout>>();
  #state: ConnectionState;
  #stream: { topics: Set<string>; abort: AbortController } | null = null;
  #openTimer: ReturnType<typeof setTimeout> | null = null;
  #gapTimer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;
  /** Time at which the page was last complete, on the wall clock and on the monotonic clock. */
  #completeAt: { at: number; steady: number } | null = null;
  readonly #silence = new SilenceWatch(() => {
    this.#stream?.abort.abort();
    this.#stream = null;
    this.#lose();
  });

  constructor(options: Options = {}) {
    this.#options = {
      onState: options.onState ?? (() => {}),
      fetch: options.fetch,
      now: options.now ?? Date.now,
      random: options.random ?? Math.random,
    };
    this.#state = initialConnectionState(this.#options.now());
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Delivers everything in `topic` after `after`, then new frames. @returns a function that unsubscribes */
  subscribe(topic: string, after: Position, reader: TopicReader): () => void {
    const subscription: Subscription = { topic, reader, seen: after };
    this.#subscriptions.add(subscription);
    clearTimeout(this.#lingering.get(topic));
    this.#lingering.delete(topic);
    const buffer = this.#buffers.get(topic);
    if (buffer?.covers(after)) {
      this.#deliver(subscription, buffer.since(after));
      if (!this.#stream && !this.#openTimer) this.#openSoon(GATHER_MS);
    } else {
      if (buffer) buffer.rewind(after);
      else this.#buffers.set(topic, new TopicBuffer(after));
      // The current stream would leave a gap in this topic; the next stream leaves none.
      this.#stream?.topics.delete(topic);
      this.#openSoon(GATHER_MS);
    }
    return () => {
      const isLast = this.#subscriptions.delete(subscription) && !this.#isRead(topic);
      if (isLast)
        this.#lingering.set(
          topic,
          setTimeout(() => this.#drop(topic), LINGER_MS),
        );
    };
  }

  /** Called when the network is back or the page is visible again: retries without delay. */
  wake(): void {
    this.#silence.check();
    const isHopeless = isStale(this.#state.status) && this.#silence.silentMs >= HOPELESS_MS;
    if ((!this.#stream || isHopeless) && this.#subscriptions.size > 0) this.#openSoon(0);
  }

  /** Called when the browser reports that it is offline. Reconnects, because a local server may still be reachable. */
  doubt(): void {
    if (this.#stream) this.#openSoon(GATHER_MS);
  }

  close(): void {
    this.#closed = true;
    for (const timer of [this.#openTimer, this.#gapTimer, ...this.#lingering.values()]) if (timer) clearTimeout(timer);
    this.#silence.stop();
    this.#stream?.abort.abort();
    this.#stream = null;
  }

  #isRead(topic: string): boolean {
    return [...this.#subscriptions].some((subscription) => subscription.topic === topic);
  }

  #drop(topic: string): void {
    this.#lingering.delete(topic);
    this.#buffers.delete(topic);
    // During a reconnect delay, the next stream has the new topics anyway.
    if (this.#stream) this.#openSoon(0);
  }

  #openSoon(delayMs: number): void {
    if (this.#closed) return;
    if (this.#openTimer) clearTimeout(this.#openTimer);
    this.#openTimer = setTimeout(() => {
      this.#openTimer = null;
      void this.#open();
    }, delayMs);
  }

  async #open(): Promise<void> {
    const topics = [...this.#buffers.keys()];
    this.#stream?.abort.abort();
    this.#stream = null;
    // A server known to be away gets the full timeout to answer.
    if (topics.length === 0 || isStale(this.#state.status)) this.#silence.stop();
    if (topics.length === 0 || this.#closed) return;
    this.#transition('retry');
    this.#silence.start();
    const stream = { topics: new Set(topics), abort: new AbortController() };
    this.#stream = stream;
    const after = topics
      .map((topic) => (this.#buffers.get(topic) as TopicBuffer).position)
      .reduce((least, position) => (comparePositions(position, least) < 0 ? position : least));

    // Ignores a replaced stream, including bytes that it has already read.
    const current =
      <Args extends unknown[]>(handle: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#stream === stream) handle(...args);
      };
    const end = await readStream(
      { topics, after, signal: stream.abort.signal, fetch: this.#options.fetch },
      {
        active: current(() => this.#noteActivity()),
        hello: current((hello) => {
          if (hello.resume === 'gap') this.#reset(hello.position);
        }),
        rows: current((frames) => this.#receive(frames)),
        upToDate: current((position) => {
          for (const topic of stream.topics) this.#buffers.get(topic)?.advance(position);
          this.#transition('up-to-date');
          this.#noteActivity();
        }),
      },
    );
    if (this.#stream !== stream) return;
    this.#stream = null;
    if (end === 'bye') {
      this.#openSoon(0);
      return;
    }
    this.#silence.stop();
    if (end === 'unauthorized') this.#transition('unauthorized');
    else this.#lose();
  }

  #lose(): void {
    this.#transition('cut');
    this.#openSoon(retryDelayMs(this.#state.attempt, RECONNECT, this.#options.random()));
  }

  #noteActivity(): void {
    this.#silence.reset();
    const { status } = this.#state;
    if (status === 'live' || status === 'gap')
      this.#completeAt = { at: this.#options.now(), steady: performance.now() };
  }

  #receive(received: readonly ReceivedFrame[]): void {
    const streamed = this.#stream?.topics ?? new Set<string>();
    const fresh = new Map<string, RowFrame[]>();
    for (const { frame, chars } of received) {
      const topic = topicOf(frame);
      if (!streamed.has(topic) || !this.#buffers.get(topic)?.add(frame, chars)) continue;
      const list = fresh.get(topic);
      if (list) list.push(frame);
      else fresh.set(topic, [frame]);
    }
    const last = received.at(-1)?.frame.id;
    if (last !== undefined) for (const topic of streamed) this.#buffers.get(topic)?.advance(last);
    if (fresh.size === 0) return;
    for (const subscription of this.#subscriptions) {
      const own = fresh.get(subscription.topic);
      if (own) this.#deliver(subscription, own);
    }
  }

  #deliver(subscription: Subscription, frames: RowFrame[]): void {
    const unseen = frames.filter((frame) => comparePositions(frame.id, subscription.seen) > 0);
    const last = unseen.at(-1);
    if (!last) return;
    subscription.seen = last.id;
    subscription.reader.frames(unseen);
  }

  #reset(position: Position): void {
    this.#transition('gap');
    for (const buffer of this.#buffers.values()) buffer.rewind(position);
    for (const { reader } of [...this.#subscriptions]) reader.reset();
    if (this.#gapTimer) clearTimeout(this.#gapTimer);
    this.#gapTimer = setTimeout(() => this.#transition('gap-shown'), GAP_SHOWN_MS);
  }

  #transition(event: ConnectionEvent): void {
    const now = this.#options.now();
    // Keeps the age if the wall clock was set back.
    const completeAt =
      this.#completeAt && Math.min(this.#completeAt.at, now - (performance.now() - this.#completeAt.steady));
    const next = nextConnectionState(this.#state, event, now, completeAt);
    if (next === this.#state) return;
    this.#state = next;
    this.#options.onState(next);
  }
}

/**
 * A server silent for longer is away, whatever TCP reports: heartbeats may be late by a few seconds. Including the
 * check interval this stays below 25 s.
 */
const SILENCE_MS = HEARTBEAT_MS + 7_000;
const CHECK_MS = 1_000;

/**
 * Calls back once when the silence exceeds `SILENCE_MS`.
 *
 * Failure: after the machine slept, the wall clock shows the silence; after the wall clock was set back, the monotonic
 * clock does.
 */
class SilenceWatch {
  readonly #onSilent: () => void;
  #timer: ReturnType<typeof setInterval> | null = null;
  #lastActive = { wall: 0, steady: 0 };

  constructor(onSilent: () => void) {
    this.#onSilent = onSilent;
  }

  /** Starts measuring; continues if it already does. */
  start(): void {
    if (this.#timer !== null) return;
    this.reset();
    this.#timer = setInterval(() => this.check(), CHECK_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  reset(): void {
    this.#lastActive = { wall: Date.now(), steady: performance.now() };
  }

  get silentMs(): number {
    return Math.max(Date.now() - this.#lastActive.wall, performance.now() - this.#lastActive.steady);
  }

  /** Checks immediately, for example when a sleeping page becomes visible. */
  check(): void {
    if (this.#timer === null || this.silentMs < SILENCE_MS) return;
    this.stop();
    this.#onSilent();
  }
}

/** Limits of a topic's buffer. A view that is reopened soon needs no new connection. */
const MAX_FRAMES = 2_000;
const MAX_CHARS = 4_000_000;

/**
 * The received frames of one topic.
 *
 * Ordering: ascending. The snapshot at `coveredFrom` and the buffer are everything up to `position`.
 */
export class TopicBuffer {
  /** Everything up to this position has arrived. */
  position: Position;
  /** Everything after this position is buffered. */
  #coveredFrom: Position;
  #frames: ReceivedFrame[] = [];
  #chars = 0;

  constructor(after: Position) {
    this.position = after;
    this.#coveredFrom = after;
  }

  /** @returns true if the frame is new. A stream opened further back for another topic repeats some. */
  add(frame: RowFrame, chars: number): boolean {
    if (comparePositions(frame.id, this.position) <= 0) return false;
    this.position = frame.id;
    this.#frames.push({ frame, chars });
    this.#chars += chars;
    if (this.#frames.length > MAX_FRAMES || this.#chars > MAX_CHARS) this.#evict();
    return true;
  }

  /** Marks the topic as complete up to a position. */
  advance(position: Position): void {
    if (comparePositions(position, this.position) > 0) this.position = position;
  }

  covers(after: Position): boolean {
    return comparePositions(after, this.#coveredFrom) >= 0;
  }

  since(after: Position): RowFrame[] {
    return this.#frames.flatMap(({ frame }) => (comparePositions(frame.id, after) > 0 ? frame : []));
  }

  /** Starts again at `after`. */
  rewind(after: Position): void {
    this.position = after;
    this.#coveredFrom = after;
    this.#frames = [];
    this.#chars = 0;
  }

  #evict(): void {
    let count = 0;
    while (this.#frames.length - count > MAX_FRAMES / 2 || this.#chars > MAX_CHARS / 2) {
      this.#chars -= this.#frames[count]?.chars ?? 0;
      count += 1;
    }
    this.#coveredFrom = this.#frames.splice(0, count).at(-1)?.frame.id ?? this.#coveredFrom;
  }
}
