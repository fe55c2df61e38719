import { HEARTBEAT_MS } from '@interlude/protocol/limits';
import { comparePositions, type Position } from '@interlude/protocol/position';
import { retryDelayMs } from '@interlude/protocol/retry-delay';
import {
  type ConnectionEvent,
  type ConnectionState,
  initialConnectionState,
  isStale,
  nextConnectionState,
} from './connection-state';
import { type ReceivedFrame, readStream } from './read-stream';
import { type RowFrame, topicOf } from './row-frame';

/** Subscriptions of one page come in a burst; they share one request. */
const GATHER_MS = 10;
const RECONNECT = { firstMs: 500, longestMs: 10_000 };
/** A topic nobody reads any more stays on the stream this long: going back and forth costs no new connection. */
const LINGER_MS = 20_000;
/** A gap stays said at least this long. */
const GAP_SHOWN_MS = 20_000;
/** An attempt without an answer for this long is not waited for once there is reason to hope for a better one. */
const HOPELESS_MS = 3_000;

export interface TopicReader {
  frames(frames: RowFrame[]): void;
  /** Rows were missed for good. Reload the snapshot, then subscribe after its position. */
  reset(): void;
}

interface Subscription {
  topic: string;
  reader: TopicReader;
  /** The last position this reader was given: every reader sees each row once, whatever the stream repeats. */
  seen: Position;
}

interface Options {
  onState?: (state: ConnectionState) => void;
  fetch?: typeof fetch;
  now?: () => number;
  random?: () => number;
}

/**
 * The one live connection: any number of readers and topics on a single `GET /stream`.
 *
 * Ordering: positions come from one counter, so a frame at N says that all topics of the stream are told up to N. A
 * new topic re-opens the stream at the smallest position anyone needs; what the others had already is dropped here.
 * Failure: a cut, a silence, a `bye` or a changed set of topics all resume by position. A `gap` resets readers. Silence is
 * counted over all streams: one that is opened while the server is away does not make it look alive.
 */
export class LiveConnection {
  readonly #options: Required<Omit<Options, 'fetch'>> & { fetch: typeof fetch | undefined };
  readonly #subscriptions = new Set<Subscription>();
  readonly #tracks = new Map<string, TopicTrack>();
  /** The topics that nobody reads just now, each with the timer that drops it. */
  readonly #lingering = new Map<string, ReturnType<typeof setTimeout>>();
  #state: ConnectionState;
  #stream: { topics: Set<string>; abort: AbortController } | null = null;
  #openTimer: ReturnType<typeof setTimeout> | null = null;
  #gapTimer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;
  /** When everything up to then had last arrived: by the wall's clock, and by one that nobody moves. */
  #whole: { at: number; steady: number } | null = null;
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

  /** Everything of `topic` after `after`, then whatever comes. @returns unsubscribe */
  subscribe(topic: string, after: Position, reader: TopicReader): () => void {
    const subscription: Subscription = { topic, reader, seen: after };
    this.#subscriptions.add(subscription);
    clearTimeout(this.#lingering.get(topic));
    this.#lingering.delete(topic);
    const track = this.#tracks.get(topic);
    if (track?.covers(after)) {
      this.#deliver(subscription, track.since(after));
      if (!this.#stream && !this.#openTimer) this.#openSoon(GATHER_MS);
    } else {
      if (track) track.rewind(after);
      else this.#tracks.set(topic, new TopicTrack(after));
      // What the present stream still says of this topic would leave a hole before it; the next stream tells it all.
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

  /** The network is back, or somebody looks again: don't sit out the delay, nor an attempt that went nowhere. */
  wake(): void {
    this.#silence.look();
    const isHopeless = isStale(this.#state.status) && this.#silence.silentMs >= HOPELESS_MS;
    if ((!this.#stream || isHopeless) && this.#subscriptions.size > 0) this.#openSoon(0);
  }

  /** The network is said to be gone. A server on this machine is there all the same: ask it, and let that tell. */
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
    this.#tracks.delete(topic);
    // While the delay after a cut runs, the next open has the new set of topics by itself.
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
    const topics = [...this.#tracks.keys()];
    this.#stream?.abort.abort();
    this.#stream = null;
    // What is known to be away gets the whole time to answer anew.
    if (topics.length === 0 || isStale(this.#state.status)) this.#silence.stop();
    if (topics.length === 0 || this.#closed) return;
    this.#transition('retry');
    this.#silence.start();
    const stream = { topics: new Set(topics), abort: new AbortController() };
    this.#stream = stream;
    const after = topics
      .map((topic) => (this.#tracks.get(topic) as TopicTrack).position)
      .reduce((least, position) => (comparePositions(position, least) < 0 ? position : least));

    // A stream that has been replaced must not speak any more, even about bytes it had already read.
    const current =
      <Args extends unknown[]>(handle: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#stream === stream) handle(...args);
      };
    const end = await readStream(
      { topics, after, signal: stream.abort.signal, fetch: this.#options.fetch },
      {
        heard: current(() => this.#hear()),
        hello: current((hello) => {
          if (hello.resume === 'gap') this.#reset(hello.position);
        }),
        rows: current((frames) => this.#take(frames)),
        upToDate: current((position) => {
          for (const topic of stream.topics) this.#tracks.get(topic)?.advance(position);
          this.#transition('up-to-date');
          this.#hear();
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

  #hear(): void {
    this.#silence.heard();
    const { status } = this.#state;
    if (status === 'live' || status === 'gap') this.#whole = { at: this.#options.now(), steady: performance.now() };
  }

  #take(received: readonly ReceivedFrame[]): void {
    const streamed = this.#stream?.topics ?? new Set<string>();
    const fresh = new Map<string, RowFrame[]>();
    for (const { frame, chars } of received) {
      const topic = topicOf(frame);
      if (!streamed.has(topic) || !this.#tracks.get(topic)?.take(frame, chars)) continue;
      const list = fresh.get(topic);
      if (list) list.push(frame);
      else fresh.set(topic, [frame]);
    }
    const last = received.at(-1)?.frame.id;
    if (last !== undefined) for (const topic of streamed) this.#tracks.get(topic)?.advance(last);
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
    for (const track of this.#tracks.values()) track.rewind(position);
    for (const { reader } of [...this.#subscriptions]) reader.reset();
    if (this.#gapTimer) clearTimeout(this.#gapTimer);
    this.#gapTimer = setTimeout(() => this.#transition('gap-shown'), GAP_SHOWN_MS);
  }

  #transition(event: ConnectionEvent): void {
    const now = this.#options.now();
    // If the wall clock was set back since, the age stays and the time moves.
    const wholeAt = this.#whole && Math.min(this.#whole.at, now - (performance.now() - this.#whole.steady));
    const next = nextConnectionState(this.#state, event, now, wholeAt);
    if (next === this.#state) return;
    this.#state = next;
    this.#options.onState(next);
  }
}

/**
 * A server that has said nothing for this long is away, whatever TCP thinks: it would have said at least a heartbeat,
 * and that may be late by some seconds. With the time between two looks it is less than 25 s.
 */
const SILENCE_MS = HEARTBEAT_MS + 7_000;
const LOOK_MS = 1_000;

/**
 * Tells once when nothing was heard for too long.
 *
 * Failure: a machine that slept is noticed at its first look, as its wall clock went on; a wall clock that is put back
 * hides nothing, as the other clock goes on.
 */
class SilenceWatch {
  readonly #onSilent: () => void;
  #timer: ReturnType<typeof setInterval> | null = null;
  #heard = { wall: 0, steady: 0 };

  constructor(onSilent: () => void) {
    this.#onSilent = onSilent;
  }

  /** Silence counts from now on; where it is watched already, from where it did. */
  start(): void {
    if (this.#timer !== null) return;
    this.heard();
    this.#timer = setInterval(() => this.look(), LOOK_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  heard(): void {
    this.#heard = { wall: Date.now(), steady: performance.now() };
  }

  get silentMs(): number {
    return Math.max(Date.now() - this.#heard.wall, performance.now() - this.#heard.steady);
  }

  /** Looks at once, as when somebody comes back to a page that slept. */
  look(): void {
    if (this.#timer === null || this.silentMs < SILENCE_MS) return;
    this.stop();
    this.#onSilent();
  }
}

/** What is kept of a topic, so that a view opened again soon is served without a new connection. */
const MOST_FRAMES = 2_000;
const MOST_CHARS = 4_000_000;

/**
 * What the connection knows of one topic.
 *
 * Ordering: what is kept ascends; together with the snapshot at `coveredFrom` it is everything up to `position`.
 */
export class TopicTrack {
  /** Everything of this topic up to here has arrived. */
  position: Position;
  /** Everything after this, up to `position`, is kept. */
  #coveredFrom: Position;
  #kept: ReceivedFrame[] = [];
  #chars = 0;

  constructor(after: Position) {
    this.position = after;
    this.#coveredFrom = after;
  }

  /** @returns whether the frame is new. A stream that was opened further back for another topic repeats some. */
  take(frame: RowFrame, chars: number): boolean {
    if (comparePositions(frame.id, this.position) <= 0) return false;
    this.position = frame.id;
    this.#kept.push({ frame, chars });
    this.#chars += chars;
    if (this.#kept.length > MOST_FRAMES || this.#chars > MOST_CHARS) this.#forgetHalf();
    return true;
  }

  /** Nothing of this topic stands between `position` and here. */
  advance(position: Position): void {
    if (comparePositions(position, this.position) > 0) this.position = position;
  }

  covers(after: Position): boolean {
    return comparePositions(after, this.#coveredFrom) >= 0;
  }

  since(after: Position): RowFrame[] {
    return this.#kept.flatMap(({ frame }) => (comparePositions(frame.id, after) > 0 ? frame : []));
  }

  /** Start again from `after`: what comes from here on is told anew. */
  rewind(after: Position): void {
    this.position = after;
    this.#coveredFrom = after;
    this.#kept = [];
    this.#chars = 0;
  }

  #forgetHalf(): void {
    let count = 0;
    while (this.#kept.length - count > MOST_FRAMES / 2 || this.#chars > MOST_CHARS / 2) {
      this.#chars -= this.#kept[count]?.chars ?? 0;
      count += 1;
    }
    this.#coveredFrom = this.#kept.splice(0, count).at(-1)?.frame.id ?? this.#coveredFrom;
  }
}
